/** The only outbound sanitiser. It removes controls first, so that none can hide a marker, then scaffolding. */
import { stripControls, stripControlsStreaming } from '../texts/control-characters.ts';
import { type StripResult, stripScaffolding, stripScaffoldingStreaming } from './scaffolding.ts';

/** Returns a finished answer as a person may see it, and the reply tag it contained. */
export function sanitizeOutbound(text: string): StripResult {
  return stripScaffolding(stripControls(text));
}

/** Sanitises an unfinished answer: always a prefix of what `sanitizeOutbound` returns for the finished one. */
export function sanitizeStreaming(text: string): string {
  return stripScaffoldingStreaming(stripControlsStreaming(text));
}
