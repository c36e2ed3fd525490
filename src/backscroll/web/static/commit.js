// A commit: diffs side by side or inline.
import { setUpDiffs } from "./diffs.js";

setUpDiffs();
