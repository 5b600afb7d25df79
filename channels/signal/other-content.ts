/** Lines for the content of a message other than words. Pure; core marks them as data and bounds them. */
import { cleanText } from '#channel-kit/clean-text.ts';
import type { Content, SharedContact } from './envelope-schema.ts';

/** Returns a line each, or several for a poll; empty if there is only text. */
export function describedIn(content: Content): readonly string[] {
  const { pollCreate, contacts, sticker, payment, previews, attachments } = content;
  const unfetchable = (attachments ?? []).filter(({ id }) => !id);
  const lines = [
    ...(pollCreate ? pollLines(pollCreate) : []),
    ...(contacts ?? []).map(contactLine),
    ...(sticker ? [`Sticker number ${sticker.stickerId ?? '?'} of a sticker pack`] : []),
    ...(payment ? [['Notice of a payment', payment.note].filter(isPresent).join(': ')] : []),
    ...(previews ?? []).map(previewLine),
    ...unfetchable.map(
      ({ contentType, filename }) => `File that isn't on the server: ${fileLabel(contentType, filename)}`,
    ),
  ];
  return lines.map((line) => cleanText(line).replace(/\s+/g, ' ').trim()).filter((line) => line !== '');
}

/** Names a file by its name and type, as far as they are known. */
export function fileLabel(
  contentType: string | null | undefined,
  filename: string | null | undefined,
): string {
  return [filename, contentType].filter(isPresent).join(', ') || 'without a name';
}

function isPresent(text: string | null | undefined): text is string {
  return text !== null && text !== undefined && text !== '';
}

function pollLines({
  question,
  options,
  allowMultiple,
}: NonNullable<Content['pollCreate']>): readonly string[] {
  return [
    `Poll${allowMultiple ? ' (several answers allowed)' : ''}: ${question ?? ''}`,
    ...(options ?? []).map((option, index) => `${index + 1}. ${option}`),
  ];
}

function contactLine({ name, phone, email, address, organization }: SharedContact): string {
  const { prefix, given, middle, family, suffix, nickname } = name ?? {};
  const full = [prefix, given, middle, family, suffix].filter(isPresent).join(' ') || nickname;
  const places = (address ?? []).map(({ street, postcode, city, country }) =>
    [street, postcode, city, country].filter(isPresent).join(' '),
  );
  const facts = [full, organization, ...(phone ?? []).map(valueIn), ...(email ?? []).map(valueIn), ...places];
  return `Contact: ${facts.filter(isPresent).join(', ') || 'without a name'}`;
}

function valueIn({ value }: { readonly value?: string | null | undefined }) {
  return value;
}

function previewLine({ url, title, description }: NonNullable<Content['previews']>[number]): string {
  const facts = [title, description, url].filter(isPresent);
  return facts.length === 0 ? '' : `Preview of a link: ${facts.join(' – ')}`;
}
