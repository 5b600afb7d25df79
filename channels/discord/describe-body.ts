/** Turns a message's body into its written words, lines about everything else, and its files. Pure. */
import { MessageActivityType, StickerFormatType } from 'discord.js';
import { fitChars } from '#channel-kit/clean-text.ts';
import { fileKind } from '#channel-kit/event-mapping.ts';
import type { Attachment, Body, Poll, Sticker } from './body-schema.ts';
import { describeComponents } from './describe-components.ts';
import { describeEmbed, nameIn } from './describe-embed.ts';
import { type Description, joined, type MediaLink } from './described.ts';

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
