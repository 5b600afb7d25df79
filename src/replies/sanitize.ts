/** The one outbound sanitiser: controls first, so that no marker hides behind one; then scaffolding. */
import { stripControls, stripControlsStreaming } from '../texts/control-characters.ts';
import { type StripResult, stripScaffolding, stripScaffoldingStreaming } from './scaffolding.ts';

/** A finished answer as a person may see it, and the reply tag it carried. */
export function sanitizeOutbound(text: string): StripResult {
  return stripScaffolding(stripControls(text));
}

/** An unfinished answer: always a beginning of what `sanitizeOutbound` makes of the finished one. */
export function sanitizeStreaming(text: string): string {
  return stripScaffoldingStreaming(stripControlsStreaming(text));
}
