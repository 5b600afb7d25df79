// Describes a call to the person who has to approve it, and binds their approval to it by a hash. A call that one message
// can't show whole isn't asked about, since an approval also counts for what nobody could see.

import { createHash } from 'node:crypto';
import type { Tool } from '#contracts/tool.ts';

/** Longest description, UTF-16 units: fits any network's message together with the question. */
const maxShownLength = 1_200;
const maxShownLines = 40;

export type CallDescription =
  | { readonly kind: 'shown'; readonly shown: string }
  /** `problem` ends a sentence for the model. */
  | { readonly kind: 'too-long'; readonly problem: string };

/** Returns the hash of a call's description: equal for calls with the same effect. Throws what the tool throws. */
export function digestOf(tool: Tool, input: unknown): string {
  return createHash('sha256')
    .update(`${tool.name}\n${describe(tool, input)}`)
    .digest('hex');
}

/** Returns the description with everything invisible made visible. Throws what the tool throws. */
export function describeCall(tool: Tool, input: unknown): CallDescription {
  const text = describe(tool, input);
  // Checked first, so that no longer text is searched.
  const shown = text.length > maxShownLength ? text : text.replace(invisible, escapeOf);
  const lines = shown.split('\n', maxShownLines + 1).length;
  if (shown.length <= maxShownLength && lines <= maxShownLines) return { kind: 'shown', shown };
  const problem = `a person has to approve this call, and it is too long to be shown whole (at most ${maxShownLength} characters in ${maxShownLines} lines); split it into smaller calls`;
  return { kind: 'too-long', problem };
}

function describe(tool: Tool, input: unknown): string {
  return tool.describe?.(input) ?? JSON.stringify(input, null, 1);
}

/** Characters that look like nothing, or change how others look: controls, joiners, bidirectional marks, odd spaces. */
const invisible = /[^\P{C}\n]|[^\P{Z} ]/gu;

function escapeOf(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}
