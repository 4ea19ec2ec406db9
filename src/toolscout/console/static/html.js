// The view library: Preact, its hooks, and htm, which writes its elements as template strings without a build step.
import { h, render } from "./vendor/preact.mjs";
import htm from "./vendor/htm.mjs";

export { render };
export { useCallback, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.mjs";
export const html = htm.bind(h);
