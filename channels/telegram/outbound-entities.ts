/** Spans → Telegram entities, by Telegram's rules (Bot API, "Formatting options"). */
import type { MessageEntity } from 'grammy/types';
import { fitSpans, nestedSpans } from '#channel-kit/nested-spans.ts';
import type { FormattedText, Span } from '#contracts/formatted-text.ts';

/** Telegram drops entities over this number. */
const maxEntities = 100;

export function entitiesOf({ text, spans }: FormattedText): MessageEntity[] {
  const nested = nestedSpans({ text, spans: spans.filter(isTaken) });
  return fitSpans(nested, maxEntities).map(toEntity);
}

/** Leaves out links other than to the web: `tg://user` would ping a person, and Telegram refuses the rest. */
function isTaken(span: Span): boolean {
  return span.kind !== 'link' || /^https?:\/\/\S+$/i.test(span.url);
}

function toEntity(span: Span): MessageEntity {
  const { start: offset, length } = span;
  if (span.kind === 'link') return { type: 'text_link', offset, length, url: span.url };
  if (span.kind === 'code-block') {
    const language = span.language?.slice(0, 32);
    return { type: 'pre', offset, length, ...(language ? { language } : {}) };
  }
  return { type: span.kind === 'quote' ? 'blockquote' : span.kind, offset, length };
}
