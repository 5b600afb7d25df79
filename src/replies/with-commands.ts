import type { Button, Outbound, OutboundContent } from '#contracts/outbound.ts';

/** Returns a part for a channel without buttons: its text ends with the command of each button. */
export function withCommands(part: Outbound): Outbound {
  const { content } = part;
  if ((content.kind !== 'text' && content.kind !== 'edit') || content.buttons === undefined) return part;
  const { buttons, ...bare } = content;
  return { ...part, content: { ...bare, text: endWith(content.text, buttons) } };
}

function endWith(
  text: Extract<OutboundContent, { kind: 'text' }>['text'],
  buttons: readonly Button[],
): Extract<OutboundContent, { kind: 'text' }>['text'] {
  const lines = buttons.map(({ label, command }) => `\n${label}: ${command}`);
  return { ...text, text: `${text.text}${lines.join('')}` };
}
