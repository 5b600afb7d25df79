import { plainText } from '../../src/contracts/formatted-text.ts';
import { noSections } from '../../src/contracts/section.ts';
import { createTextShaper } from '../../src/replies/text-shaper.ts';

/** What the metrics ask of a loop that nothing holds, and of a formatter that nothing was given. */
export const freeLoop = {
  loop: { delays: () => ({ p50: 0, p99: 0, max: 0 }), held: () => new Map<string, number>() },
  formatter: { counts: () => ({ parsed: 0, givenUp: 0 }) },
};

/** Shapes short texts as ever; a long one is told as it was written. */
export const shaping = {
  sections: noSections,
  shaper: createTextShaper({ formatter: { format: async (text) => plainText(text) }, sections: noSections }),
};
