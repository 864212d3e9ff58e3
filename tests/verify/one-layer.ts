/** Every layer, for `npm run verify`: one of them in a process of its own. */
import { LAYERS } from "./layers";
import { serveLayers } from "./serve-layers";

serveLayers(LAYERS);
