/**
 * Components as text: what cards of "Components V2" say and show, and the labels of buttons and menus. A component of
 * an unknown kind is read by the fields that it has in common with the known ones. Pure; linear in what is read.
 */
import { z } from 'zod';
import { fileKind } from '#channel-kit/event-mapping.ts';
import { isDiscordFile } from './attachment-ref.ts';
import { nameIn } from './describe-embed.ts';
import { type Description, joined, type MediaLink } from './described.ts';
import { soft, softId, softList, softText } from './lenient.ts';

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

export function describeComponents(
  components: readonly unknown[],
  name: (text: string) => string,
): Description {
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
