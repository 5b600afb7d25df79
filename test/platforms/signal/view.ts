import type { StandingMessage, StyleRange, TextStyle } from './types.ts';
import type { World } from './world.ts';

const marks: Readonly<Record<TextStyle, string>> = {
  BOLD: 'b',
  ITALIC: 'i',
  STRIKETHROUGH: 's',
  SPOILER: 'spoiler',
  MONOSPACE: 'code',
};

/** Shows a message as a person sees it: `<b>bold</b>`, `@Ada` for a mention, `[file.png]` for an attachment. */
export function shown(world: World, message: StandingMessage): string {
  const units = message.text.split('');
  for (const { start, length, uuid } of message.mentions) {
    units[start] = `@${world.person(uuid)?.name ?? uuid}`;
    for (let index = start + 1; index < start + length; index += 1) units[index] = '';
  }
  for (const style of inner(message.styles)) mark(units, style);
  const files = message.attachments.map(({ fileName, contentType }) => `[${fileName ?? contentType}]`);
  return [units.join(''), ...files].filter((part) => part !== '').join(' ');
}

/** Puts shorter ranges first, so that longer ones are wrapped around them. */
function inner(styles: readonly StyleRange[]): readonly StyleRange[] {
  return [...styles].sort((a, b) => a.length - b.length);
}

function mark(units: string[], { style, start, length }: StyleRange): void {
  if (length === 0) return;
  const last = start + length - 1;
  units[start] = `<${marks[style]}>${units[start] ?? ''}`;
  units[last] = `${units[last] ?? ''}</${marks[style]}>`;
}
