// The icons of the navigation, as lines in a square of 20.
import { html } from "./html.js";

const PATHS = {
  overview: "M3 3h6v6H3zM11 3h6v4h-6zM11 9h6v8h-6zM3 11h6v6H3z",
  servers: "M3 4h14v5H3zM3 11h14v5H3zM6 6.5h.01M6 13.5h.01",
  tools: "M12.5 3a4.5 4.5 0 0 0-4 6.4L3 15l2 2 5.6-5.5A4.5 4.5 0 0 0 17 6l-2.6 2.6-3-3L14 3z",
  search: "M8.5 14a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM12.5 12.5L17 17",
  try: "M6 3.5v13l10-6.5z",
  activity: "M2 10h4l2-6 4 12 2-6h4",
  approvals: "M10 2l7 3v5c0 4-3 7-7 8-4-1-7-4-7-8V5zM7 10l2 2 4-4",
  access: "M7 13a4 4 0 1 1 3.5-2L17 11v3h-2v2h-3v-3h-1.5",
  connect: "M8 12l4-4M7 9L4.5 11.500a3 3 0 0 0 4 4L11 13M13 11l2.500-2.500a3 3 0 0 0-4-4L9 7",
};

export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;
}
