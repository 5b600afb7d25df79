import type { Framing } from '../store/lanes/take-rows.ts';
import { newDelimiter, wrapUntrusted } from '../texts/wrap-untrusted.ts';

/** How what others said is framed for the model; the boundary is new for every take, so nobody can close it. */
export function newFraming(): Framing {
  const boundary = newDelimiter();
  const frame = (about: string) => wrapUntrusted('', about, boundary).split('\n');
  const [contextIntro = ''] = frame('what was said and done here before, for context only');
  const [overflowIntro = ''] = frame('older messages, shortened because too many were waiting');
  return { contextIntro, overflowIntro, contextOutro: frame('').at(-1) ?? '' };
}
