import { toMarkdown } from '../../channels/discord/markup.ts';
import { toStyledText } from '../../channels/signal/styled-text.ts';
import { entitiesOf } from '../../channels/telegram/entities.ts';
import { compileGlob, compileSearch } from '../../plugins/files/search-pattern.ts';
import { onOneLine } from '../../plugins/files/text-content.ts';
import { AssistantDraft } from '../../src/agent/assistant-draft.ts';
import { cleanText, fitBytes, fitChars } from '../../src/agent/clean-text.ts';
import { createLoopGuard } from '../../src/agent/loop-guard.ts';
import { printable, rowsOf } from '../../src/cli/printable.ts';
import type { FormattedText, Span } from '../../src/contracts/formatted-text.ts';
import { refuseHostileShape } from '../../src/contracts/hostile-shape.ts';
import { parseCommand } from '../../src/inbound/commands.ts';
import { createRedactor, stripControls as stripLogControls, stripText } from '../../src/logging/redaction.ts';
import { chunkFormatted } from '../../src/replies/chunk.ts';
import { cleanLabel, cleanUntrusted } from '../../src/replies/clean-untrusted.ts';
import { stripControls, stripControlsStreaming } from '../../src/replies/control-characters.ts';
import { judgeRepeat } from '../../src/replies/dedupe.ts';
import { isHonestLink } from '../../src/replies/link-safety.ts';
import { createPreviewText } from '../../src/replies/preview.ts';
import { sanitizeOutbound, sanitizeStreaming } from '../../src/replies/sanitize.ts';
import { judgeSilence } from '../../src/replies/silence.ts';
import { visibleWhileStreaming } from '../../src/replies/stream-guard.ts';
import {
  newBoundary,
  renderGroupContext,
  renderInbound,
  wrapUntrusted,
} from '../../src/replies/untrusted.ts';

export type Parser = { readonly name: string; run(text: string): unknown };

function spansOf(text: string): FormattedText {
  const kinds = ['bold', 'italic', 'strikethrough', 'code', 'spoiler', 'quote'] as const;
  const spans: Span[] = [];
  let at = 0;
  for (const [index, word] of text.split(/(?<=[^\p{L}])/u).entries()) {
    const start = at;
    at += word.length;
    const kind = kinds[index % kinds.length] ?? 'bold';
    if (word.length > 0)
      spans.push(
        index % 7 === 0
          ? { kind: 'link', start, length: word.length, url: `https://x.example/${index}` }
          : { kind, start, length: word.length + (index % 3 === 0 ? 5 : 0) },
      );
  }
  return { text, spans: spans.filter((s) => s.start + s.length <= text.length) };
}
const route = { channel: 'telegram', account: 'a', conversation: 'c' } as never;
const redactor = createRedactor(['a-secret-value', 'another one']);
const p = (name: string, run: (text: string) => unknown): Parser => ({ name, run });

export const parsers: readonly Parser[] = [
  p('stripControls', stripControls),
  p('stripControlsStreaming', stripControlsStreaming),
  p('sanitizeOutbound', sanitizeOutbound),
  p('sanitizeStreaming', sanitizeStreaming),
  p('judgeSilence chat', (t) => judgeSilence(t, 'chat')),
  p('judgeSilence heartbeat', (t) => judgeSilence(t, 'heartbeat')),
  p('visibleWhileStreaming', (t) => visibleWhileStreaming(t, 'chat')),
  p('visibleWhileStreaming announce', (t) => visibleWhileStreaming(t, 'announce')),
  p('judgeRepeat', (t) =>
    judgeRepeat(
      t,
      [{ tool: 'message', state: 'sent', route, text: `${t.slice(0, t.length * 0.7)}x`, media: [] }],
      { route },
    ),
  ),
  p('isHonestLink url', (t) => isHonestLink(`https://${t}`, 'x')),
  p('isHonestLink label', (t) => isHonestLink('https://x.example', t)),
  p('cleanUntrusted', cleanUntrusted),
  p('cleanLabel', cleanLabel),
  p('wrapUntrusted', (t) => wrapUntrusted(t, 'x', newBoundary())),
  p('renderInbound', (t) =>
    renderInbound({
      text: t,
      sender: { name: t, authority: 'guest' },
      sentAt: 0,
      isGroup: true,
      attachments: [],
      timeZone: 'UTC',
      quote: { author: t, text: t },
    }),
  ),
  p('renderGroupContext', (t) => renderGroupContext([{ sender: t, text: t, sentAt: 0 }], 'UTC')),
  p('chunk plain', (t) => chunkFormatted({ text: t, spans: [] }, { maxLength: 2000 })),
  p('chunk spans', (t) => chunkFormatted(spansOf(t), { maxLength: 2000 })),
  p('chunk discord', (t) =>
    chunkFormatted(spansOf(t), { maxLength: 2000, nativeLength: (x) => toMarkdown(x).length }),
  ),
  p('preview', (t) => {
    const v = createPreviewText({ context: 'chat', capabilities: { text: { maxLength: 4000 } } });
    for (let i = 0; i < t.length; i += 200) {
      v.push(t.slice(i, i + 200));
      v.now();
    }
  }),
  p('toMarkdown', (t) => toMarkdown(spansOf(t.slice(0, 4000)))),
  p('entitiesOf', (t) => entitiesOf(spansOf(t))),
  p('toStyledText', (t) => toStyledText(spansOf(t))),
  p('toMarkdown plain', (t) => toMarkdown({ text: t, spans: [] })),
  p('toMarkdown one span', (t) =>
    toMarkdown({
      text: t,
      spans: [
        { kind: 'bold', start: 0, length: t.length },
        { kind: 'code', start: 5, length: 9 },
      ],
    }),
  ),
  p('toMarkdown spans', (t) => toMarkdown(spansOf(t))),
  p('cleanText', cleanText),
  p('fitBytes', (t) => fitBytes(t, 1000)),
  p('fitChars', (t) => fitChars(t, 1000)),
  p('draft', (t) => {
    const d = new AssistantDraft('x' as never, 0, new Set());
    for (let i = 0; i < t.length; i += 8) {
      d.write({ type: 'content_delta', text: t.slice(i, i + 8) });
      d.snapshot();
    }
    d.finish('end_turn', { time: 0 });
  }),
  p('draft calls', (t) => {
    const d = new AssistantDraft('x' as never, 0, new Set());
    for (let i = 0; i < t.length; i += 8) {
      const id = t.slice(0, 8);
      d.write({ type: 'tool_use_start', id, name: id });
      d.write({ type: 'tool_use_delta', id, json: id });
      d.snapshot();
    }
    d.finish('end_turn', { time: 0 });
  }),
  p('loop guard', (t) =>
    createLoopGuard(3).admit({
      id: 'x',
      name: 'x',
      input: JSON.stringify([...t].map((c) => ({ [c]: c }))),
      finished: true,
    }),
  ),
  p('refuseHostileShape', (t) => refuseHostileShape([...t].map((c) => ({ c })))),
  p('parseCommand', (t) => parseCommand(`/queue ${t}`)),
  p('parseCommand edit', (t) => parseCommand(`/queue edit 1 ${t}`)),
  p('parseCommand link', (t) => parseCommand(`/link ${t}`)),
  p('parseCommand pair', (t) => parseCommand(`/pair ${t}`)),
  p('parseCommand bare', (t) => parseCommand(`/${t}`)),
  p('redact', redactor.redact),
  p('log controls', (t) => stripLogControls(JSON.stringify({ a: t, b: t }))),
  p('log controls raw', stripLogControls),
  p('stripText', stripText),
  p('printable', printable),
  p('rowsOf', (t) => rowsOf(t, 80)),
  p('onOneLine', onOneLine),
  p('grep', (t) => compileSearch('(a|b)*c.*[^x]{2,30}y', { ignoresCase: true })(t)),
  p('compile search', (t) => {
    try {
      compileSearch(t, { ignoresCase: false });
    } catch {}
  }),
  p('compile glob', (t) => {
    try {
      compileGlob(t)(t);
    } catch {}
  }),
  p('compile search short', (t) => {
    try {
      compileSearch(t.slice(0, 500), { ignoresCase: false });
    } catch {}
  }),
  p('compile glob short', (t) => {
    try {
      compileGlob(t.slice(0, 500))(t);
    } catch {}
  }),
];
