/** Reads the content of a message, a quoted message or a snapshot. Whatever can't be read leaves the rest readable. */
import { z } from 'zod';
import { remoteSize } from '#channel-kit/remote-number.ts';
import {
  attachmentFields,
  embedFields,
  messageFields,
  pollFields,
  stickerFields,
  undocumentedAttachmentFields,
  undocumentedEmbedFields,
  undocumentedMessageFields,
} from './content-fates.ts';
import { fieldsOf, soft, softFlag, softId, softInt, softList, softText } from './raw-fields.ts';

const url = softText(4096);
const name = softText(512);
const words = softText(65_536);

const attachmentSchema = z.object({
  id: softId,
  filename: softText(2048),
  title: softText(1024),
  description: softText(4096),
  size: z.unknown().optional().transform(remoteSize),
  content_type: softText(256),
  duration_secs: soft(z.number().nonnegative()),
  url,
});

const linkSchema = soft(z.object({ url, proxy_url: url, content_type: softText(256), description: name }));

const embedSchema = z.object({
  type: softText(64),
  title: words,
  description: words,
  url,
  timestamp: softText(64),
  fields: softList(z.object({ name: words, value: words }), 50),
  author: soft(z.object({ name, url })),
  footer: soft(z.object({ text: words })),
  provider: soft(z.object({ name })),
  image: linkSchema,
  thumbnail: linkSchema,
  video: linkSchema,
});

const emojiSchema = soft(z.object({ id: softId, name }));
const pollMediaSchema = soft(z.object({ text: words, emoji: emojiSchema }));

export const pollSchema = z.object({
  question: pollMediaSchema,
  answers: softList(z.object({ answer_id: softInt, poll_media: pollMediaSchema }), 50),
  allow_multiselect: softFlag,
  expiry: softText(64),
  results: soft(
    z.object({
      is_finalized: softFlag,
      answer_counts: softList(z.object({ id: softInt, count: softInt }), 50),
    }),
  ),
});

const stickerSchema = z.object({ id: softId, name, format_type: softInt });

const bodySchema = z.object({
  content: words,
  flags: softInt,
  attachments: softList(attachmentSchema, 100),
  embeds: softList(embedSchema, 25),
  components: softList(z.record(z.string(), z.unknown()), 50),
  sticker_items: softList(stickerSchema, 20),
  stickers: softList(stickerSchema, 20),
  poll: soft(pollSchema),
  activity: soft(z.object({ type: softInt })),
  application: soft(z.object({ name })),
  call: soft(z.object({ ended_timestamp: softText(64) })),
  role_subscription_data: soft(z.object({ tier_name: name })),
  shared_client_theme: soft(z.object({})),
  soundboard_sounds: softList(z.object({ name }), 20),
  gift_info: soft(z.object({})),
  purchase_notification: soft(z.object({})),
  mentions: softList(
    z.object({
      id: z.string(),
      username: name,
      global_name: name,
      member: soft(z.object({ nick: name })),
    }),
    500,
  ),
  mention_channels: softList(z.object({ id: z.string(), name }), 100),
});

export type Attachment = z.output<typeof attachmentSchema>;
export type EmbedCard = z.output<typeof embedSchema>;
export type Poll = z.output<typeof pollSchema>;
export type Sticker = z.output<typeof stickerSchema>;

export type Body = z.output<typeof bodySchema> & {
  /** The messages that a forward contains. */
  readonly snapshots: readonly Body[];
  /** The fields that nobody knows. */
  readonly unknownFields: readonly string[];
  /** The known fields of content that have a value; one that yields nothing when read counts as unknown, too. */
  readonly filledFields: readonly string[];
};

/** A forward contains one message, which may be a forward. */
const maxSnapshots = 10;
const maxForwards = 3;

/** Never throws: at worst, everything is unknown. */
export function readBody(data: unknown, depth = 0): Body {
  const raw = fieldsOf(data);
  const body = bodySchema.parse(raw);
  const snapshots = Array.isArray(raw.message_snapshots) && depth < maxForwards ? raw.message_snapshots : [];
  return {
    ...body,
    snapshots: snapshots
      .slice(0, maxSnapshots)
      .map((snapshot: unknown) => readBody(fieldsOf(snapshot).message, depth + 1)),
    unknownFields: unknownIn(raw),
    filledFields: contentKeys.filter((key) => isPresent(raw[key])),
  };
}

const messageKeys = new Set(Object.keys({ ...messageFields, ...undocumentedMessageFields }));
const embedKeys = new Set(Object.keys({ ...embedFields, ...undocumentedEmbedFields }));
const attachmentKeys = new Set(Object.keys({ ...attachmentFields, ...undocumentedAttachmentFields }));
const pollKeys = new Set(Object.keys(pollFields));
const stickerKeys = new Set(Object.keys(stickerFields));

function unknownIn(raw: ReturnType<typeof fieldsOf>): readonly string[] {
  return [
    ...unknownKeys([raw], messageKeys, ''),
    ...unknownKeys(raw.embeds, embedKeys, 'embeds.'),
    ...unknownKeys(raw.attachments, attachmentKeys, 'attachments.'),
    ...unknownKeys([raw.poll], pollKeys, 'poll.'),
    ...unknownKeys(raw.sticker_items, stickerKeys, 'sticker_items.'),
  ];
}

/** Core bounds the number of names again. */
const maxUnknown = 20;

function unknownKeys(list: unknown, known: ReadonlySet<string>, prefix: string): readonly string[] {
  const all = Array.isArray(list) ? list.slice(0, maxUnknown) : [];
  return all
    .flatMap((each: unknown) => Object.entries(fieldsOf(each)))
    .filter(([key, value]) => !known.has(key) && isPresent(value))
    .slice(0, maxUnknown)
    .map(([key]) => prefix + key);
}

const contentKeys = Object.entries({ ...messageFields, ...undocumentedMessageFields })
  .filter(([, { as }]) => as === 'text' || as === 'media')
  .map(([key]) => key);

function isPresent(value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === false) return false;
  if (Array.isArray(value)) return value.some(isPresent);
  return typeof value !== 'object' || Object.values(value).some(isPresent);
}
