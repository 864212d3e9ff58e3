/** What can be done with issues. Operations take a desk (`../desk`): they work outside Git as well, where there are no claims. */
export { doc } from "./doc";
export { graph } from "./graph";
export { issue } from "./issue";
export { mergeIssue } from "./merge-issue";
export { query } from "./query";
export { search } from "./search";
export { dep, label } from "./sets";
