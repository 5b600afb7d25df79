import type { UploadedFile } from './body.ts';
import { Form, refuse } from './errors.ts';
import { type AllowedMentions, allAllowed, readAllowedMentions, snowflakeExpected } from './mentions.ts';
import { isSnowflake } from './snowflake.ts';
import { messageFlags, type Wire } from './types.ts';

const limits = { text: 2000, nonce: 25, embeds: 10, embedTitle: 256, embedText: 4096, embedsTotal: 6000 };

/** A message as described by a request. Fields that it omits are undefined. */
export type Draft = {
  readonly text: string | undefined;
  readonly embeds: readonly Wire[] | undefined;
  readonly components: readonly Wire[] | undefined;
  readonly flags: number | undefined;
  readonly nonce: string | number | undefined;
  readonly enforcesNonce: boolean;
  readonly allowed: AllowedMentions;
  readonly replyTo: { readonly messageId: string; readonly failsIfGone: boolean } | undefined;
  /** A poll as the platform shows it. */
  readonly poll: Wire | undefined;
  /** Uploaded files with their descriptions, and the ids of earlier files to keep. */
  readonly uploads: readonly Upload[];
  readonly keptFiles: readonly string[] | undefined;
};

type Upload = UploadedFile & { readonly description?: string; readonly fields?: Wire };

type Place = {
  /** The path of the message inside the request's body, for example `data.`. */
  readonly under?: string;
  /** What may be pinged if the message doesn't say. */
  readonly allowed?: AllowedMentions;
};

/** Reads and checks the body of a message. Throws the platform's refusal, listing everything that is wrong. */
export function readMessageBody(body: Wire, files: readonly UploadedFile[], place: Place = {}): Draft {
  const form = new Form();
  const { under = '', allowed: usual = allAllowed } = place;
  const at = (path: string) => `${under}${path}`;
  const text = readText(body.content, form, at('content'));
  const embeds = readList(body.embeds, form, at('embeds'));
  const components = readList(body.components, form, at('components'));
  checkEmbeds(embeds ?? [], form, at('embeds'));
  checkComponents(components ?? [], form, at('components'));
  const nonce = readNonce(body.nonce, form, at('nonce'));
  const allowed = readAllowedMentions(body.allowed_mentions, usual, form);
  const poll = readPoll(body.poll, form, at('poll'));
  const { uploads, keptFiles } = readAttachments(body.attachments, files, form, at('attachments'));
  form.check();
  const flags = typeof body.flags === 'number' ? body.flags : undefined;
  if (((flags ?? 0) & messageFlags.isVoiceMessage) !== 0) checkVoice(text, uploads);
  return {
    text,
    embeds,
    components,
    flags,
    nonce,
    enforcesNonce: body.enforce_nonce === true,
    allowed,
    replyTo: readReference(body.message_reference),
    poll,
    uploads,
    keptFiles,
  };
}

/** Says whether there is nothing to show. */
export function isEmpty(draft: Draft): boolean {
  const hasParts = [draft.embeds, draft.components, draft.uploads].some((list) => (list?.length ?? 0) > 0);
  return (draft.text ?? '') === '' && !hasParts && draft.poll === undefined;
}

function readPoll(value: unknown, form: Form, path: string): Wire | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { question, answers, duration = 24, allow_multiselect: isMultiple } = value as Wire;
  const textIn = (media: unknown) => String((media as { readonly text?: unknown } | undefined)?.text ?? '');
  const given = Array.isArray(answers) ? answers : [];
  const texts = given.map((answer) => textIn(answer?.poll_media));
  const lengths = [[textIn(question), 300, 'question.text'] as const];
  for (const [text, limit, where] of [
    ...lengths,
    ...texts.map((text, index) => [text, 55, `answers.${index}.poll_media.text`] as const),
  ])
    if (text.length < 1 || text.length > limit)
      form.add(`${path}.${where}`, 'BASE_TYPE_BAD_LENGTH', `Must be between 1 and ${limit} in length.`);
  if (texts.length < 1 || texts.length > 10)
    form.add(`${path}.answers`, 'BASE_TYPE_BAD_LENGTH', 'Must be between 1 and 10 in length.');
  if (!(Number(duration) >= 1 && Number(duration) <= 768))
    form.add(`${path}.duration`, 'NUMBER_TYPE_MAX', 'int value should be less than or equal to 768.');
  return {
    question: { text: textIn(question) },
    answers: texts.map((text, index) => ({ answer_id: index + 1, poll_media: { text } })),
    expiry: null,
    allow_multiselect: isMultiple === true,
    layout_type: 1,
  };
}

/** White space at the ends is trimmed before the length is counted, in UTF-16 units. */
function readText(value: unknown, form: Form, path: string): string | undefined {
  if (value === undefined) return undefined;
  if (value === null) return '';
  if (typeof value === 'object') {
    form.add(path, 'STRING_TYPE_CONVERT', `Could not interpret "${JSON.stringify(value)}" as string.`);
    return undefined;
  }
  const text = String(value).trim();
  if (text.length > limits.text) form.tooLong(path, limits.text);
  return text;
}

function readNonce(value: unknown, form: Form, path: string): string | number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string' && !Number.isSafeInteger(value)) {
    form.add(path, 'NONCE_TYPE_INVALID', 'Nonce must be a string or an integer.');
    return undefined;
  }
  if (String(value).length > limits.nonce) form.tooLong(path, limits.nonce);
  return value as string | number;
}

function readList(value: unknown, form: Form, path: string): readonly Wire[] | undefined {
  if (value === undefined) return undefined;
  if (value === null) return [];
  if (Array.isArray(value)) return value as readonly Wire[];
  form.add(path, 'LIST_TYPE_CONVERT', 'Only iterables may be used in a ListType');
  return undefined;
}

function checkEmbeds(embeds: readonly Wire[], form: Form, path: string): void {
  if (embeds.length > limits.embeds) form.tooLong(path, limits.embeds);
  let total = 0;
  for (const [index, { title, description }] of embeds.entries()) {
    const lengths = [String(title ?? '').length, String(description ?? '').length] as const;
    total += lengths[0] + lengths[1];
    if (lengths[0] > limits.embedTitle) form.tooLong(`${path}.${index}.title`, limits.embedTitle);
    if (lengths[1] > limits.embedText) form.tooLong(`${path}.${index}.description`, limits.embedText);
  }
  if (total > limits.embedsTotal)
    form.add(path, 'MAX_EMBED_SIZE_EXCEEDED', 'Embed size exceeds maximum size of 6000');
}

/** Checks rows of buttons and menus; components of the new kind are accepted unchecked. */
function checkComponents(rows: readonly Wire[], form: Form, path: string): void {
  for (const [rowIndex, row] of rows.entries()) {
    if (row.type !== 1) continue;
    const items = (row.components ?? []) as readonly Wire[];
    if (items.length < 1 || items.length > 5)
      form.add(
        `${path}.${rowIndex}.components`,
        'BASE_TYPE_BAD_LENGTH',
        'Must be between 1 and 5 in length.',
      );
    for (const [index, item] of items.entries()) {
      const where = `${path}.${rowIndex}.components.${index}`;
      if (item.type !== 2 || item.style === 5) continue;
      const id = String(item.custom_id ?? '');
      if (id === '') form.add(`${where}.custom_id`, 'BASE_TYPE_REQUIRED', 'This field is required');
      if (id.length > 100) form.tooLong(`${where}.custom_id`, 100);
      if (String(item.label ?? '').length > 80) form.tooLong(`${where}.label`, 80);
    }
  }
  const rowsOnly = rows.filter((row) => row.type === 1);
  if (rowsOnly.length > 5 && rowsOnly.length === rows.length) form.tooLong(path, 5);
}

function readAttachments(value: unknown, files: readonly UploadedFile[], form: Form, path: string) {
  const named = readList(value, form, path);
  const uploads = files.map((file) => {
    const about = named?.find((one) => String(one.id) === file.key);
    const description = about?.description;
    const name = typeof about?.filename === 'string' ? about.filename : file.name;
    const { duration_secs, waveform } = about ?? {};
    // As on the platform, they are ignored unless the upload says that it is audio.
    const isAudio = file.mimeType.startsWith('audio/') && duration_secs !== undefined;
    return {
      ...{ ...file, name },
      ...(typeof description === 'string' && { description }),
      ...(isAudio && { fields: { duration_secs, waveform } }),
    };
  });
  const others = (named ?? []).filter((one) => !files.some((file) => file.key === String(one.id)));
  for (const one of others)
    if (String(one.id).length < 15)
      form.add(path, 'ATTACHMENT_NOT_FOUND', `There is no file files[${String(one.id)}] in the request.`);
  return { uploads, keptFiles: named === undefined ? undefined : others.map((one) => String(one.id)) };
}

function checkVoice(text: string | undefined, uploads: readonly Upload[]): void {
  if (text) throw refuse('voiceWithContent');
  const [audio, ...more] = uploads;
  if (audio === undefined || more.length > 0 || !audio.mimeType.startsWith('audio/'))
    throw refuse('voiceWithoutAudio');
  const { duration_secs: duration, waveform } = audio.fields ?? {};
  const points = typeof waveform === 'string' ? Buffer.from(waveform, 'base64').length : 0;
  if (typeof duration !== 'number' || duration <= 0 || points < 1 || points > 256)
    throw refuse('voiceWithoutMetadata');
}

function readReference(value: unknown): Draft['replyTo'] {
  if (typeof value !== 'object' || value === null) return undefined;
  const reference = value as Wire;
  const messageId = String(reference.message_id ?? '');
  if (!isSnowflake(messageId)) throw snowflakeExpected('message_reference.message_id', messageId);
  return { messageId, failsIfGone: reference.fail_if_not_exists !== false };
}

/** Refuses a message with nothing to show, unless its components are of the new kind. */
export function requireContent(draft: Draft): void {
  const isNewKind = ((draft.flags ?? 0) & messageFlags.componentsV2) !== 0;
  if (isEmpty(draft) && !isNewKind) throw refuse('emptyMessage');
}
