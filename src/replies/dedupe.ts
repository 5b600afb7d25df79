/**
 * Decides whether an answer only repeats what the `message` tool already sent to the same place
 * (spec 9.3). Only confirmed sends of that tool to this answer's own route count: another target, a
 * failed or unknown send, or a message to another session never silences an answer.
 */
import { isSameRoute, type ReplyRoute } from '#contracts/route.ts';

/** A message that a tool sent. The list is reset after each answer. */
export type ToolSend = {
  /** The tool that sent; only `message` speaks to people. */
  readonly tool: string;
  readonly state: 'sent' | 'unknown' | 'failed';
  readonly route: ReplyRoute;
  readonly text: string;
  /** Absolute paths of the files sent with it. */
  readonly media: readonly string[];
};

export type RepeatVerdict = 'new' | 'repeats' | 'acknowledges';

/** Answers that only say that something was sent, normalized. Can be configured. */
const ACKNOWLEDGEMENTS: readonly string[] = [
  'sent',
  'done',
  'ok',
  'okay',
  'all set',
  'all done',
  'delivered',
  'message sent',
  'reply sent',
  'sent it',
  'i sent it',
  'its sent',
  'it is sent',
  'sent the message',
  'i sent the message',
  'ive sent it',
  'i have sent it',
  'ive sent the message',
  'i have sent the message',
  'ive sent it to you',
  'the message was sent',
  'the message has been sent',
  'your message was sent',
  'ive replied',
  'i have replied',
  'ive answered',
  'gesendet',
  'erledigt',
  'fertig',
  'nachricht gesendet',
  'ich habe es gesendet',
  'ich habe die nachricht gesendet',
  'enviado',
  'listo',
  'hecho',
  'mensaje enviado',
  'envoyé',
  'fait',
  'cest fait',
  'message envoyé',
  'cest envoyé',
];

/** Shortest contained text that counts, normalized UTF-16 units. */
const SHORTEST_CONTAINED = 10;

export function judgeRepeat(
  finalText: string,
  toolSends: readonly ToolSend[],
  options: { readonly route: ReplyRoute | undefined; readonly acknowledgements?: readonly string[] },
): RepeatVerdict {
  const sent = confirmedSends(toolSends, options.route);
  if (sent.length === 0 || finalText.trim() === '') return 'new';
  const texts = sent.map((send) => send.text);
  const said = normalize(finalText);
  if ([...texts, texts.join('\n')].some((text) => isRepeat(finalText, said, text))) return 'repeats';
  const acknowledgements = options.acknowledgements ?? ACKNOWLEDGEMENTS;
  return isAcknowledgement(finalText, acknowledgements) ? 'acknowledges' : 'new';
}

/** Returns the sends that have certainly arrived in this conversation. */
export function confirmedSends(
  toolSends: readonly ToolSend[],
  route: ReplyRoute | undefined,
): readonly ToolSend[] {
  if (route === undefined) return [];
  return toolSends.filter(
    (send) => send.tool === 'message' && send.state === 'sent' && isSameRoute(send.route, route),
  );
}

/**
 * Omits the files that the `message` tool already sent to this route. Of a file that was attached repeatedly, the last
 * copy remains.
 */
export function withoutSentMedia<Media extends { readonly source: string }>(
  media: readonly Media[],
  toolSends: readonly ToolSend[],
  route: ReplyRoute | undefined,
): readonly Media[] {
  const sent = new Set(confirmedSends(toolSends, route).flatMap((send) => send.media));
  const last = new Map(media.map((file) => [file.source, file]));
  return [...last.values()].filter(({ source }) => !sent.has(source));
}

/** `a`: the final text, normalized. */
function isRepeat(finalText: string, a: string, sentText: string): boolean {
  if (finalText.trim() === sentText.trim()) return true;
  const b = normalize(sentText);
  if (a === '' || b === '') return false;
  if (a === b) return true;
  const [shorter, longer] = a.length < b.length ? [a, b] : [b, a];
  return (
    shorter.length >= SHORTEST_CONTAINED && shorter.length * 2 >= longer.length && contains(longer, shorter)
  );
}

function isAcknowledgement(text: string, acknowledgements: readonly string[]): boolean {
  const words = wordsOf(text);
  return words !== '' && acknowledgements.some((phrase) => wordsOf(phrase) === words);
}

function normalize(text: string): string {
  return text
    .normalize('NFC')
    .replace(/\p{Extended_Pictographic}|\p{Emoji_Modifier}|\p{Regional_Indicator}|\ufe0f|\u200d|\u20e3/gu, '')
    .replace(/\s+/g, ' ')
    .trim()
    .toLowerCase();
}

function wordsOf(text: string): string {
  return normalize(text)
    .replace(/['’]/g, '')
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}

/**
 * Says whether a text contains another, in time linear in both for any input (Knuth, Morris, Pratt). The
 * engine's own search rereads the wanted text wherever its beginning occurs.
 */
function contains(text: string, wanted: string): boolean {
  if (wanted === '') return true;
  const borders = bordersOf(wanted);
  let matched = 0;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    while (matched > 0 && unit !== wanted.charCodeAt(matched)) matched = borders[matched - 1] ?? 0;
    if (unit === wanted.charCodeAt(matched)) matched += 1;
    if (matched === wanted.length) return true;
  }
  return false;
}

/** Returns for each prefix of the text how much of its own beginning is repeated at its end. */
function bordersOf(text: string): Int32Array {
  const borders = new Int32Array(text.length);
  let border = 0;
  for (let index = 1; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    while (border > 0 && unit !== text.charCodeAt(border)) border = borders[border - 1] ?? 0;
    if (unit === text.charCodeAt(border)) border += 1;
    borders[index] = border;
  }
  return borders;
}
