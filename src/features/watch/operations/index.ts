export { type Events, type EventsRequest, events, stats } from "./events";
export { type Info, info } from "./info";
export { type Status, status } from "./status";
