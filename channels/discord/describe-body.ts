/** Turns a message's body into its written words, lines about everything else, and its files. Pure. */
import { MessageActivityType, StickerFormatType } from 'discord.js';
import { z } from 'zod';
import { fitChars } from '#channel-kit/clean-text.ts';
import { fileKind } from '#channel-kit/event-mapping.ts';
import type { AttachmentRef } from '#contracts/attachment.ts';
import { isDiscordFile } from './attachment-ref.ts';
import type { Attachment, Body, EmbedCard, Poll, Sticker } from './body-schema.ts';
import { soft, softId, softList, softText } from './raw-fields.ts';

export type Words = Description & {
  /** As written; empty if there is none. */
  readonly text: string;
  /** Unknown fields, and known ones of which nothing could be read. */
  readonly unknownFields: readonly string[];
};

/** `name` puts names in place of ids. */
type NameText = (text: string) => string;

/** Limits of what is told about one message, in lines and UTF-16 code units; Discord allows about 10,000. */
const maxLines = 150;
const maxLength = 20_000;

/** Voice messages are marked by a flag of their message. */
const voiceFlag = 1 << 13;

/** `nameFor` returns the naming for a body: each has its own list of mentioned people. */
export function readWords(body: Body, nameFor: (body: Body) => NameText): Words {
  const name = nameFor(body);
  const parts = describersOf(body, name);
  const described = joined(Object.values(parts));
  const within = body.snapshots.map((snapshot) => readWords(snapshot, nameFor));
  const text = [name(body.content ?? ''), ...within.map((words) => words.text)].filter(Boolean).join('\n');
  const all = joined([described, ...within]);
  return {
    text,
    lines: bounded(all.lines),
    media: all.media,
    unknownFields: [
      ...body.unknownFields,
      ...body.filledFields.filter((key) => isUnread(key, { body, parts })),
      ...within.flatMap((words) => words.unknownFields.map((field) => `message_snapshots.${field}`)),
    ],
  };
}

type Parts = Readonly<Record<string, Description>>;

/** By the name of the field. */
function describersOf(body: Body, name: NameText): Parts {
  const { activity, application, flags = 0 } = body;
  const isVoice = (flags & voiceFlag) !== 0;
  const stickers = body.sticker_items.length > 0 ? body.sticker_items : body.stickers;
  const said = (...lines: readonly (string | false | undefined)[]): Description => ({
    lines: lines.filter((line): line is string => typeof line === 'string'),
    media: [],
  });
  return {
    attachments: joined(body.attachments.map((each) => describeAttachment(each, { isVoice, name }))),
    embeds: joined(body.embeds.map((embed) => describeEmbed(embed, name))),
    components: describeComponents(body.components, name),
    sticker_items: joined(stickers.map(describeSticker)),
    poll: said(...(body.poll === undefined ? [] : describePoll(body.poll))),
    activity: said(activity && describeActivity(activity.type, application?.name)),
    application: said(
      activity === undefined && application?.name !== undefined && `[Application] ${application.name}`,
    ),
    soundboard_sounds: said(...body.soundboard_sounds.map((sound) => `[Sound] ${sound.name ?? ''}`.trim())),
    call: said(body.call && `[Call]${body.call.ended_timestamp === undefined ? '' : ' ended'}`),
    role_subscription_data: said(
      body.role_subscription_data && `[Subscription] ${body.role_subscription_data.tier_name ?? ''}`.trim(),
    ),
    shared_client_theme: said(body.shared_client_theme && '[Shared the colors of a theme]'),
    gift_info: said(body.gift_info && '[Gift]'),
    purchase_notification: said(body.purchase_notification && '[Purchase]'),
  };
}

/** Says whether a field has a value but yielded nothing. */
function isUnread(key: string, { body, parts }: { readonly body: Body; readonly parts: Parts }): boolean {
  switch (key) {
    case 'content':
      return body.content === undefined;
    case 'message_snapshots':
      return body.snapshots.length === 0;
    case 'referenced_message':
      return false;
    case 'stickers':
      return isEmpty(parts.sticker_items);
    case 'application':
      return isEmpty(parts.application) && isEmpty(parts.activity);
    default:
      return isEmpty(parts[key]);
  }
}

function isEmpty(part: Description | undefined): boolean {
  return part === undefined || (part.lines.length === 0 && part.media.length === 0);
}

type FileAbout = { readonly isVoice: boolean; readonly name: NameText };

function describeAttachment(
  { url, filename, title, description, ...file }: Attachment,
  { isVoice, name }: FileAbout,
): Description {
  const called = title === undefined ? (filename ?? 'file') : `${title}${extensionOf(filename)}`;
  const about = description === undefined ? [] : [`[Description of “${called}”] ${name(description)}`];
  const length =
    file.duration_secs === undefined ? [] : [`[Length of “${called}”] ${Math.round(file.duration_secs)} s`];
  if (url === undefined || !/^https?:\/\/\S+$/.test(url))
    return { lines: [`[File without an address] ${called}`, ...about], media: [] };
  const link: MediaLink = {
    url,
    id: file.id,
    kind: isVoice ? 'voice' : fileKind(file.content_type),
    name: called,
    mimeType: file.content_type,
    sizeBytes: file.size,
  };
  return { lines: [...about, ...length], media: [link] };
}

/** The title is the name before Discord made it fit into an address, without its extension. */
function extensionOf(filename = ''): string {
  return /\.\w{1,10}$/.exec(filename)?.[0] ?? '';
}

/** Animations that aren't pictures (Lottie) are known only by their name. */
function describeSticker({ id, name, format_type: format }: Sticker): Description {
  const line = `[Sticker] ${name ?? ''}`.trim();
  const url = id === undefined ? undefined : stickerAddress(id, format);
  if (url === undefined) return { lines: id === undefined && name === undefined ? [] : [line], media: [] };
  return { lines: [line], media: [{ url, kind: 'image', name: nameIn(url) }] };
}

function stickerAddress(id: string, format: number | undefined): string | undefined {
  switch (format) {
    case StickerFormatType.PNG:
    case StickerFormatType.APNG:
      return `https://cdn.discordapp.com/stickers/${id}.png`;
    case StickerFormatType.GIF:
      return `https://media.discordapp.net/stickers/${id}.gif`;
    default:
      return undefined;
  }
}

function describePoll({ question, answers, results, expiry, ...poll }: Poll): readonly string[] {
  const counts = new Map(results?.answer_counts.map(({ id, count }) => [id, count]));
  const options = answers.map(({ answer_id: id, poll_media: media }, index) => {
    const votes = results === undefined ? '' : ` (${votesOf(counts.get(id) ?? 0)})`;
    return `${index + 1}. ${mediaText(media)}${votes}`;
  });
  const head = mediaText(question);
  if (head === '' && options.length === 0) return [];
  const end =
    results?.is_finalized === true ? 'It has ended.' : expiry === undefined ? '' : `It ends ${expiry}.`;
  const rule = [poll.allow_multiselect ? 'Several answers are allowed.' : '', end].filter(Boolean).join(' ');
  return [`[Poll] ${head}`.trim(), ...options, rule].filter(Boolean);
}

function votesOf(count: number): string {
  return count === 1 ? '1 vote' : `${count} votes`;
}

/** Returns an answer or a question as people see it. */
export function mediaText(media: Poll['question']): string {
  return [media?.emoji?.name, media?.text].filter(Boolean).join(' ');
}

function describeActivity(type: number | undefined, application: string | undefined): string {
  const verbs = new Map<number | undefined, string>([
    [MessageActivityType.Join, 'join'],
    [MessageActivityType.Spectate, 'watch'],
    [MessageActivityType.Listen, 'listen along'],
    [MessageActivityType.JoinRequest, 'let them join'],
  ]);
  const what = verbs.get(type);
  const where = application === undefined ? '' : ` (${application})`;
  return `[Invitation${what === undefined ? '' : ` to ${what}`}]${where}`;
}

function bounded(lines: readonly string[]): readonly string[] {
  const kept: string[] = [];
  let room = maxLength;
  for (const line of lines.slice(0, maxLines)) {
    if (room <= 0) break;
    const fitting = fitChars(line, Math.max(room, 100));
    kept.push(fitting);
    room -= fitting.length;
  }
  const left = lines.length - kept.length;
  return left === 0 ? kept : [...kept, `[${left} more lines aren’t shown]`];
}

// Components as text: what cards of "Components V2" say and show, and the labels of buttons and menus. A component of
// an unknown kind is read by the fields that it has in common with the known ones. Pure; linear in what is read.

/** Discord allows 40 components in a message, three levels deep. */
const maxDepth = 8;
const maxComponents = 200;

const label = softText(512);
const words = softText(65_536);
const url = softText(4096);
const anything = softList(z.record(z.string(), z.unknown()), 100);

const fileSchema = soft(
  z.object({ url, proxy_url: url, content_type: softText(256), attachment_id: softId }),
);
const galleryItemSchema = z.object({ media: fileSchema, description: words });

const componentSchema = z.object({
  content: words,
  label,
  placeholder: label,
  value: words,
  url,
  description: words,
  name: label,
  emoji: soft(z.object({ name: label })),
  options: softList(z.object({ label, description: label }), 25),
  media: fileSchema,
  file: fileSchema,
  items: softList(galleryItemSchema, 50),
  components: anything,
  accessory: soft(z.record(z.string(), z.unknown())),
  component: soft(z.record(z.string(), z.unknown())),
});
type Component = z.output<typeof componentSchema>;

function describeComponents(components: readonly unknown[], name: (text: string) => string): Description {
  const left = { count: maxComponents };
  return joined(components.map((each) => describe(each, { name, left, depth: 0 })));
}

type Walk = {
  readonly name: (text: string) => string;
  readonly left: { count: number };
  readonly depth: number;
};

function describe(raw: unknown, walk: Walk): Description {
  walk.left.count -= 1;
  const { success, data: component } = componentSchema.safeParse(raw);
  if (!success || walk.left.count < 0 || walk.depth > maxDepth) return { lines: [], media: [] };
  const { components, accessory, component: inner } = component;
  const below = [...components, accessory, inner].filter((each) => each !== undefined);
  return joined([
    { lines: linesOf(component).map(walk.name), media: mediaOf(component) },
    ...below.map((each) => describe(each, { ...walk, depth: walk.depth + 1 })),
  ]);
}

function linesOf({
  content,
  emoji,
  options,
  description,
  value,
  items,
  ...rest
}: Component): readonly string[] {
  const about = [rest.label ?? rest.placeholder, value, description].filter(Boolean).join(': ');
  const caption = [emoji?.name, about].filter(Boolean).join(' ');
  const target = rest.url === undefined ? '' : ` (${rest.url})`;
  const choices = options.map((option) => [option.label, option.description].filter(Boolean).join(': '));
  return [
    content ?? '',
    caption === '' && target === '' ? '' : `[${caption || 'Link'}]${target}`,
    ...(choices.length === 0 ? [] : [`Options: ${choices.filter(Boolean).join(' · ')}`]),
    ...items.map((item) => item.description ?? ''),
    ...[rest.media, rest.file, ...items.map((item) => item.media)].map(addressOf),
  ].filter((line) => line !== '');
}

function mediaOf({ media, file, items, name }: Component): readonly MediaLink[] {
  const pictures = [media, ...items.map((item) => item.media)].map((one) => linkTo(one, 'image'));
  return [...pictures, linkTo(file, 'file', name)].flatMap((link) => link ?? []);
}

type File = z.output<typeof fileSchema>;

/** An uploaded file has no address that means anything to people. */
function addressOf(file: File): string {
  const { url: address = '', attachment_id: upload } = file ?? {};
  return upload !== undefined || !/^https?:/.test(address) ? '' : `File: ${address}`;
}

function linkTo(file: File, kind: MediaLink['kind'], name?: string): MediaLink | undefined {
  const from = file?.proxy_url ?? file?.url;
  if (file === undefined || from === undefined) return undefined;
  if (file.proxy_url === undefined && !isDiscordFile(from)) return undefined;
  const { content_type: mimeType, attachment_id: id, url: original = from } = file;
  const known = mimeType === undefined ? kind : fileKind(mimeType);
  // Only an uploaded file is at Discord under its own address.
  const isUpload = id !== undefined;
  return { url: isUpload ? original : from, kind: known, id, mimeType, name: name ?? nameIn(original) };
}

// Embeds as text: cards that programs make, and Discord's previews of links. Always data. Pure.

/** A picture in one of these is content; in a preview of a page it is decoration, and only its address is shown. */
const picturedTypes = new Set(['rich', 'image', 'gifv']);

function describeEmbed(embed: EmbedCard, name: (text: string) => string): Description {
  if (embed.type === 'poll_result') return { lines: pollResult(embed), media: [] };
  const isPictured = picturedTypes.has(embed.type ?? 'rich');
  const media = isPictured ? picturesOf(embed) : [];
  const said = [
    embed.author?.name,
    embed.description,
    ...embed.fields.map(({ name: what, value }) => [what, value].filter(Boolean).join(': ')),
    embed.footer?.text,
    embed.timestamp,
  ];
  const links = [
    ['Link', embed.url],
    ['Author', embed.author?.url],
    ['Picture', embed.image?.url ?? embed.thumbnail?.url],
    ['Video', embed.video?.url],
  ].flatMap(([what, url]) => (url ? [`${what}: ${url}`] : []));
  const title = [embed.provider?.name, embed.title].filter(Boolean).join(': ');
  const lines = [...said, ...links].filter((line): line is string => Boolean(line)).map(name);
  if (title === '' && lines.length === 0 && media.length === 0) return { lines: [], media };
  return { lines: [`[${kindOf(embed)}] ${name(title)}`.trim(), ...lines], media };
}

/** Discord makes all kinds but `rich` itself, from the address of a page. */
function kindOf({ type = 'rich' }: EmbedCard): string {
  return type === 'rich' ? 'Embed' : 'Link preview';
}

/** Discord serves a copy of each picture, so nobody's server learns who looks at it. */
function picturesOf({ image, thumbnail }: EmbedCard): readonly MediaLink[] {
  return [image, thumbnail].flatMap((picture) => {
    const url = picture?.proxy_url ?? picture?.url;
    if (url === undefined || (picture?.proxy_url === undefined && !isDiscordFile(url))) return [];
    return [{ url, kind: 'image', mimeType: picture?.content_type, name: nameIn(url) } as const];
  });
}

/** Returns the last part of the address's path. */
function nameIn(url: string): string | undefined {
  return URL.parse(url)?.pathname.split('/').at(-1) || undefined;
}

/** The outcome of a poll comes as an embed whose fields are for clients. */
function pollResult({ fields }: EmbedCard): readonly string[] {
  const known = new Map(fields.map(({ name, value }) => [name, value]));
  const [question, winner, emoji] = [
    'poll_question_text',
    'victor_answer_text',
    'victor_answer_emoji_name',
  ].map((key) => known.get(key));
  const [votes, total] = ['victor_answer_votes', 'total_votes'].map((key) => known.get(key));
  if (question === undefined && total === undefined && winner === undefined) return [];
  const answer = [emoji, winner].filter(Boolean).join(' ');
  const outcome =
    answer === ''
      ? `No answer won (${total ?? 0} votes)`
      : `${answer}: ${votes ?? '?'} of ${total ?? '?'} votes`;
  return [`[Poll ended] ${question ?? ''}`.trim(), outcome];
}

/** A picture or a file that a message shows. */
export type MediaLink = {
  readonly url: string;
  readonly kind: AttachmentRef['kind'];
  /** The id of the uploaded file, if it is one. */
  readonly id?: string | undefined;
  readonly name?: string | undefined;
  readonly mimeType?: string | undefined;
  readonly sizeBytes?: number | undefined;
};

/** Content other than written words: lines of text about it, and its pictures and files. */
type Description = {
  readonly lines: readonly string[];
  readonly media: readonly MediaLink[];
};

function joined(all: readonly Description[]): Description {
  return { lines: all.flatMap(({ lines }) => lines), media: all.flatMap(({ media }) => media) };
}
