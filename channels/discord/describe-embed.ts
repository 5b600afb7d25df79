/** Embeds as text: cards that programs make, and Discord's previews of links. Always data. Pure. */
import { isDiscordFile } from './attachment-ref.ts';
import type { EmbedCard } from './body-schema.ts';
import type { Description, MediaLink } from './described.ts';

/** A picture in one of these is content; in a preview of a page it is decoration, and only its address is shown. */
const picturedTypes = new Set(['rich', 'image', 'gifv']);

export function describeEmbed(embed: EmbedCard, name: (text: string) => string): Description {
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
export function nameIn(url: string): string | undefined {
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
