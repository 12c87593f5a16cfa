// Small signs, drawn.

import { html } from "./vendor/htm-preact.js";

const PATHS = {
  check: "M3 8.5l3.2 3.2L13 5",
  cross: "M4 4l8 8M12 4l-8 8",
  dot: "M8 8h.01",
  user: "M5.5 3.5L10 8l-4.5 4.500",
  gate: "M8 1.8l5 2v3.700c0 3.200-2.100 5.500-5 6.700-2.900-1.200-5-3.500-5-6.700V3.800z",
  note: "M8 8h.01",
  warn: "M8 2.500L14.300 13.500H1.700zM8 6.700v3M8 11.700h.01",
  job: "M8 5.700a2.300 2.300 0 100 4.600 2.300 2.300 0 000-4.600zM8 1.500v2M8 12.500v2M1.500 8h2M12.500 8h2M3.400 3.400l1.400 1.400M11.200 11.200l1.400 1.400M3.400 12.600l1.400-1.400M11.200 4.800l1.400-1.400",
  prune: "M4.500 2.500a2 2 0 110 4 2 2 0 010-4zM4.500 9.500a2 2 0 110 4 2 2 0 010-4zM6 5.800L14 12M6 10.200L14 4",
  think: "M4.200 10.700A3.200 3.200 0 013.800 4.400a4.300 4.300 0 018.200.6 2.900 2.900 0 01-.3 5.700zM5.500 13.500h.01",
  picture: "M2 3h12v10H2zM2 11l3.500-3.500 3 3L11 8l3 3M5.200 5.800h.01",
  send: "M8 13V3M3.500 7.500L8 3l4.500 4.500",
  stop: "M4.500 4.500h7v7h-7z",
  later: "M8 2.200a5.800 5.800 0 100 11.600A5.800 5.800 0 008 2.200zM8 5v3.300l2.200 1.300",
  back: "M9.500 3.500L5 8l4.500 4.500",
  sun: "M8 5.200a2.800 2.800 0 100 5.600 2.800 2.800 0 000-5.600zM8 1.300v1.400M8 13.300v1.400M1.300 8h1.400M13.300 8h1.400M3.300 3.300l1 1M11.700 11.700l1 1M3.300 12.700l1-1M11.700 4.300l1-1",
  moon: "M13.300 9.600A5.700 5.700 0 016.400 2.700a5.700 5.700 0 106.900 6.900z",
  auto: "M8 2.200a5.800 5.800 0 100 11.600zM8 2.200a5.800 5.800 0 010 11.600",
  side: "M2 3h12v10H2zM10 3v10",
  down: "M8 3v10M3.500 8.500L8 13l4.500-4.500",
  pause: "M5.500 3.500v9M10.500 3.500v9",
  play: "M5 3.200l7.500 4.800L5 12.800z",
  undo: "M6 3L3 6l3 3M3 6h6a3.800 3.800 0 010 7.600H6",
  ring: "M8 4.500a3.500 3.500 0 100 7 3.500 3.500 0 000-7z",
};

export const Icon = ({ name, label }) => html`<svg
  class=${`icon i-${name}`}
  viewBox="0 0 16 16"
  role=${label ? "img" : undefined}
  aria-label=${label}
  aria-hidden=${label ? undefined : "true"}
>
  <path d=${PATHS[name]} />
</svg>`;

export const Duck = () => html`<img class="duck" src="page/duck.svg" alt="" width="22" height="22" />`;

export const Spinner = ({ label }) => html`<span class="spinner" role=${label ? "img" : undefined} aria-label=${label} aria-hidden=${label ? undefined : "true"} />`;
