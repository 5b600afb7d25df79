/**
 * Chooses messages to omit in part after a request was rejected because of its history, in this order: the message that
 * the rejection names; messages that can't be serialized as JSON; messages with the kind of content that the rejection
 * mentions (for images, the unanswered ones first); messages with anything but text. Each attempt omits more, so the
 * process ends.
 */
import { jsonProblem } from '#channel-kit/json-guard.ts';
import type { TranscriptId } from '#contracts/ids.ts';
import { type AgentMessage, isImage, toolCallsOf, type Unsendable } from '#contracts/message.ts';
import type { LlmMessage, ModelFailure } from '#contracts/model.ts';
import { unreadFrom } from './compaction-cut.ts';
import { sourcesOf } from './convert.ts';

/** A message of the history, and which of its content requests must no longer contain. */
export type Mark = { readonly id: TranscriptId; readonly unsendable: Unsendable };

/** Returns an empty list when everything that could be omitted already is. `sent` was made from `messages`. */
export function marksFor(
  failure: ModelFailure,
  sent: readonly LlmMessage[],
  messages: readonly AgentMessage[],
): readonly Mark[] {
  const { detail, messageIndex } = failure;
  const isAboutThinking = /thinking|signature/i.test(detail);
  const known = new Map(messages.map((message) => [message.id, message]));
  const step = (id: TranscriptId): readonly Mark[] => {
    const unsendable = nextOf(known.get(id), isAboutThinking);
    return unsendable === undefined ? [] : [{ id, unsendable }];
  };
  const named = messageIndex === undefined ? undefined : sent[messageIndex];
  const broken = sent.filter((message) => !isWritable(message));
  const sure = [...new Set([...(named ? [named] : []), ...broken].flatMap(sourcesOf))].flatMap(step);
  // A fault of our own could have its cause anywhere, so nothing is guessed.
  if (sure.length > 0 || failure.isLocal) return sure;
  const spokenOf = /image/i.test(detail)
    ? holdersOfImages(messages)
    : messages.filter((message) => holdsAnyOf(message, kindsIn(detail)));
  const some = spokenOf.flatMap(({ id }) => step(id));
  // A rejection without a stated cause may concern anything but plain text.
  return some.length > 0
    ? some
    : messages.filter((each) => holdsAnyOf(each, special)).flatMap(({ id }) => step(id));
}

function nextOf(message: AgentMessage | undefined, isAboutThinking: boolean): Unsendable | undefined {
  if (message === undefined || message.role === 'tool') return undefined;
  switch (message.unsendable) {
    case undefined:
      return isAboutThinking && holdsAnyOf(message, ['reasoning']) ? 'thinking' : 'content';
    case 'thinking':
      return 'content';
    case 'content':
      return 'text';
    case 'text':
      return undefined;
    default:
      return message.unsendable satisfies never;
  }
}

type Kind = AgentMessage['parts'][number]['type'];
const special: readonly Kind[] = ['reasoning', 'tool_call', 'binary', 'image_url'];

function kindsIn(detail: string): readonly Kind[] {
  if (/thinking|signature/i.test(detail)) return ['reasoning'];
  return /tool/i.test(detail) ? ['tool_call'] : [];
}

/** A result's images are omitted with its call. Images that were followed by an answer had been accepted before. */
function holdersOfImages(messages: readonly AgentMessage[]): readonly AgentMessage[] {
  const callIds = new Set(
    messages
      .filter(({ parts }) => parts.some(isImage))
      .flatMap(({ parts }) =>
        parts.flatMap((part) => (part.type === 'tool_result' ? part.data.tool_call_id : [])),
      ),
  );
  const isHolder = ({ role, parts }: AgentMessage) =>
    role !== 'tool' && (parts.some(isImage) || toolCallsOf(parts).some(({ id }) => callIds.has(id)));
  const all = messages.filter((each) => isHolder(each) && holdsAnyOf(each, special));
  const unread = new Set(messages.slice(unreadFrom(messages)));
  const fresh = all.filter((each) => unread.has(each));
  return fresh.length > 0 ? fresh : all;
}

/** Says whether the message still contains any of these kinds; content that is already omitted doesn't count. */
function holdsAnyOf({ parts, unsendable }: AgentMessage, kinds: readonly Kind[]): boolean {
  if (unsendable === 'content' || unsendable === 'text') return false;
  return parts.some(({ type }) => kinds.includes(type) && (unsendable === undefined || type !== 'reasoning'));
}

function isWritable(message: LlmMessage): boolean {
  if (jsonProblem(message) !== undefined) return false;
  try {
    JSON.stringify(message);
    return true;
  } catch {
    return false;
  }
}
