import { plainText } from '../../src/contracts/formatted-text.ts';
import { createTextShaper } from '../../src/replies/text-shaper.ts';

/** The inputs of the metrics for an idle event loop and an unused formatter. */
export const freeLoop = {
  loop: { delays: () => ({ p50: 0, p99: 0, max: 0 }), held: () => 0 },
  formatter: { counts: () => ({ parsed: 0, givenUp: 0 }) },
};

/** Shapes short texts as usual; a long one stays as it was written. */
export const shaping = {
  shaper: createTextShaper({ format: async (text) => plainText(text) }),
};
