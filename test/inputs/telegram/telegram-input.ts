import type { ReadInput } from '../read-input.ts';

/** An update in a shape that Telegram sends, in our own words, and how Parley reads it. */
export type TelegramInput = {
  readonly name: string;
  /** Where the shape was seen. */
  readonly shape: string;
  readonly update: Readonly<Record<string, unknown>>;
  readonly read: ReadInput;
};

const ada = { id: 501, is_bot: false, first_name: 'Ada', last_name: 'Lind' };
const dm = { id: 501, type: 'private', first_name: 'Ada' };
export const group = { id: -1_001_000_000_032, type: 'supergroup', title: 'Allotment' };
export const bea = { id: 502, is_bot: false, first_name: 'Bea' };

export type MessageFields = Readonly<Record<string, unknown>>;

/** A message to the bot in a private chat, unless the fields say otherwise. */
export const aMessage = (fields: MessageFields): MessageFields => ({
  message_id: 90,
  date: 1_795_776_000,
  chat: dm,
  from: ada,
  ...fields,
});
/** A message in the group, by somebody else. */
export const inGroup = (fields: MessageFields): MessageFields =>
  aMessage({ chat: group, from: bea, ...fields });

export const message = (fields: MessageFields) => ({ update_id: 7, message: aMessage(fields) });
export const groupMessage = (fields: MessageFields) => ({ update_id: 7, message: inGroup(fields) });
export const edited = (fields: MessageFields) => ({
  update_id: 7,
  edited_message: aMessage({ edit_date: 1_795_776_060, ...fields }),
});

/** A file as Telegram describes it; `ref` is its `file_id`. */
export const aFile = (ref: string, fields: MessageFields = {}): MessageFields => ({
  file_id: ref,
  file_unique_id: `u-${ref}`,
  file_size: 1200,
  ...fields,
});

/** Marks the first occurrence of `part` in `text`. */
export const mark = (
  type: string,
  text: string,
  part: string,
  fields: MessageFields = {},
): MessageFields => ({
  type,
  offset: text.indexOf(part),
  length: part.length,
  ...fields,
});
