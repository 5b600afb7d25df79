import { parseJson } from '#channel-kit/parse-json.ts';
import type { AttachmentRef, StoredAttachment } from '#contracts/attachment.ts';
import type { Provenance } from '#contracts/envelope.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { FormattedText } from '#contracts/formatted-text.ts';
import type { MessageId } from '#contracts/ids.ts';
import type { RunOverride } from '#contracts/inbox-item.ts';
import type { MessagePart } from '#contracts/message.ts';
import type { OutboundContent } from '#contracts/outbound.ts';
import type { QueueSettings } from '#contracts/queue-settings.ts';
import type { ReplyRoute, RunTarget } from '#contracts/route.ts';
import type { Skill } from '#contracts/skill.ts';
import type { LaneSpec } from './keys.ts';

/**
 * The JSON columns. Only the store writes them, from typed values, inside its transactions, so they are read back
 * without a schema check: that belongs where text enters, not where our own rows return. If something else has changed
 * a row, the guard at least refuses input that would exhaust the stack.
 */
export type InboxContent = {
  readonly text: string;
  /** The text as the model reads it: labeled, with quote and forward markers, rendered at intake. */
  readonly prompt: string;
  readonly sender: { readonly id: string; readonly name: string };
  readonly sentAt: number;
  /** The quote as the model reads it; an edit changes only the text after it. */
  readonly lead?: string;
  /** Content other than words as the model reads it, after the text; a change of the words keeps it. */
  readonly tail?: string;
  /** The only content of a message that can't be read: names of fields. */
  readonly unknownFields?: readonly string[];
  /** Absent: the sender's own words. */
  readonly provenance?: Provenance;
  readonly attachments: readonly IncomingFile[];
  readonly stored?: readonly StoredAttachment[];
  /** Set when this isn't a plain message: it corrects an earlier one, or is a reaction. */
  readonly note?: { readonly kind: 'correction' | 'reaction'; readonly of: string };
  /** Set when a run of another conversation sent it: how often it was passed on, and the people who caused that run. */
  readonly relay?: { readonly hops: number; readonly askers: readonly string[] };
  /** A command that waits in its lane's order, with the input of its step. */
  readonly command?: {
    readonly name: string;
    readonly input: unknown;
    /** It ends the lane's active run instead of waiting for it. */
    readonly abortsRun?: true;
  };
  /** Set by a program for the run that begins with this message, which no other message joins. */
  readonly override?: RunOverride;
  /** Hash of everything but the text that a program has asked for; absent if that is nothing. */
  readonly digest?: string;
};

/** A file to fetch with a message. `of` describes the message it belongs to, if that is a quoted or an earlier one. */
export type IncomingFile = AttachmentRef & { readonly of?: string };

/** An edit of the message that another part became; its platform id is looked up when the edit is claimed. */
export type PartEdit = {
  readonly kind: 'edit-part';
  readonly part: string;
  /** The platform id, if a button press has named it, in case the part itself has none. */
  readonly messageId?: MessageId;
  readonly text: FormattedText;
};

/** The content of an outbox row. */
export type StoredContent = OutboundContent | PartEdit;

/** A message that is answered once its sender is admitted. */
export type KeptMessage = {
  /** Becomes the id of its item. */
  readonly id: string;
  readonly lane: LaneSpec;
  readonly route: ReplyRoute;
  readonly content: InboxContent;
  readonly eventKey: string;
  readonly messageId: string;
};

/** A message that the cap reduced to one line, until a run has read it. */
export type Summary = { readonly inboxId: string; readonly seq: number; readonly line: string };

/** Reads the JSON columns. Throws for text that isn't valid JSON. */
export const json = {
  route: (text: string | null) => routeIn(text),
  target: (text: string | null): RunTarget => (text === null ? 'record' : routeIn(text)),
  content: (text: string) => parseJson(text) as InboxContent,
  parts: (text: string) => parseJson(text) as readonly MessagePart[],
  outbound: (text: string) => parseJson(text) as StoredContent,
  kept: (text: string | null) => (text === null ? undefined : (parseJson(text) as KeptMessage)),
  summaries: (text: string | null) => (text === null ? [] : (parseJson(text) as readonly Summary[])),
  values: (text: string) => parseJson(text) as Readonly<Record<string, string>>,
  queueSettings: (text: string | null) => (text === null ? {} : (parseJson(text) as Partial<QueueSettings>)),
  skills: (text: string) => parseJson(text) as readonly Skill[],
  strings: (text: string | null) => (text === null ? [] : (parseJson(text) as readonly string[])),
};

/** Reads the route of a row that came from a conversation; only `record` items and runs have none. */
function routeIn(text: string | null): ReplyRoute {
  if (text !== null) return parseJson(text) as ReplyRoute;
  throw new ParleyError('internal', 'An item or run that is only on record has no route.');
}

/** Returns the target as stored in a `route` column. */
export function targetText(target: RunTarget): string | null {
  return target === 'record' ? null : JSON.stringify(target);
}
