/**
 * Decides what becomes of each field of a Discord message and of its parts. The tables are as complete as the library's types:
 * a field that an update of the library adds fails the type check until somebody decides about it. Fields that are in
 * no table are unknown, and a message without any other content names them.
 */
import type {
  APIAttachment,
  APIEmbed,
  APIMessage,
  APIMessageSnapshotFields,
  APIPoll,
  APIPollAnswer,
  APIReaction,
  APIStickerItem,
  APIUnfurledMediaItem,
  ComponentType,
  GatewayMessageEventExtraFields,
} from 'discord-api-types/v10';

export type Fate =
  /** Words for the model, in the sender's name or as described content. */
  | { readonly as: 'text' }
  /** A picture or a file for the model. */
  | { readonly as: 'media' }
  /** Read by the mapping: who, where, when, and whose words they are. */
  | { readonly as: 'fact' }
  /** Not content, or not read; a person can read why. */
  | { readonly as: 'nothing'; readonly why: string };

const text = { as: 'text' } as const;
const media = { as: 'media' } as const;
const fact = { as: 'fact' } as const;
const nothing = (why: string) => ({ as: 'nothing', why }) as const;
const forDisplay = nothing('it only changes how clients show the message');

export const messageFields = {
  id: fact,
  channel_id: fact,
  guild_id: fact,
  author: fact,
  member: fact,
  type: fact,
  flags: fact,
  timestamp: fact,
  edited_timestamp: fact,
  mentions: fact,
  mention_roles: fact,
  mention_channels: fact,
  webhook_id: fact,
  application_id: fact,
  interaction_metadata: fact,
  interaction: fact,
  message_reference: fact,
  content: text,
  embeds: text,
  components: text,
  poll: text,
  activity: text,
  application: text,
  call: text,
  role_subscription_data: text,
  shared_client_theme: text,
  message_snapshots: text,
  referenced_message: text,
  attachments: media,
  sticker_items: media,
  stickers: media,
  channel_type: nothing('the channel’s own report says which kind it is'),
  mention_everyone: nothing('@everyone addresses nobody in particular'),
  nonce: nothing('it is a number by which a client recognizes its own message'),
  pinned: nothing('a pin changes no words'),
  position: nothing('ids give the order'),
  reactions: nothing('each reaction is reported as an event'),
  resolved: nothing('it repeats the people and channels in a menu'),
  thread: nothing('the thread reports itself'),
  tts: forDisplay,
} as const satisfies Record<keyof APIMessage | keyof GatewayMessageEventExtraFields, Fate>;

/** Fields that Discord sends and its documentation and types leave out. */
export const undocumentedMessageFields = {
  gift_info: text,
  soundboard_sounds: text,
  purchase_notification: text,
  changelog_id: nothing('it belongs to a note from Discord'),
  content_scan_version: nothing('it is for Discord’s own filters'),
  interaction_data: nothing('it repeats the command of another application'),
  lobby_id: nothing('it names a game’s lobby, where no bot is'),
  potions: forDisplay,
} as const satisfies Record<string, Fate>;

/** A snapshot has some of a message's fields, with the same fates; the key is a field of a snapshot. */
const snapshotFields = {
  type: fact,
  flags: fact,
  timestamp: nothing('the forward’s own time counts'),
  edited_timestamp: nothing('the forward’s own time counts'),
  mentions: fact,
  mention_roles: nothing('the names of another server’s roles aren’t known'),
  content: text,
  embeds: text,
  components: text,
  attachments: media,
  sticker_items: media,
  stickers: media,
} as const satisfies Record<keyof APIMessageSnapshotFields, Fate>;

export const embedFields = {
  type: fact,
  title: text,
  description: text,
  fields: text,
  author: text,
  footer: text,
  provider: text,
  url: text,
  timestamp: text,
  video: text,
  image: media,
  thumbnail: media,
  color: forDisplay,
  flags: forDisplay,
} as const satisfies Record<keyof APIEmbed, Fate>;

/** Fields of embeds that Discord sends without documenting them. */
export const undocumentedEmbedFields = {
  content_scan_version: nothing('it is for Discord’s own filters'),
  id: nothing('nothing refers to it'),
  reference_id: nothing('it is for Discord’s own filters'),
} as const satisfies Record<string, Fate>;

export const attachmentFields = {
  id: fact,
  url: media,
  filename: media,
  content_type: media,
  size: media,
  title: text,
  description: text,
  duration_secs: text,
  flags: forDisplay,
  height: forDisplay,
  width: forDisplay,
  placeholder: forDisplay,
  placeholder_version: forDisplay,
  waveform: forDisplay,
  application: nothing('it names the game of a clip'),
  clip_created_at: nothing('the message has a time'),
  clip_participants: nothing('they are players of a game, not part of the conversation'),
  ephemeral: nothing('the file disappears with its message'),
  proxy_url: nothing('it is the same file, possibly changed'),
} as const satisfies Record<keyof APIAttachment, Fate>;

/** Fields of files that Discord sends without documenting them. */
export const undocumentedAttachmentFields = {
  content_scan_version: nothing('it is for Discord’s own filters'),
  original_content_type: nothing('the bytes decide'),
} as const satisfies Record<string, Fate>;

export const pollFields = {
  question: text,
  answers: text,
  allow_multiselect: text,
  expiry: text,
  results: text,
  layout_type: forDisplay,
} as const satisfies Record<keyof APIPoll, Fate>;

const pollAnswerFields = {
  answer_id: fact,
  poll_media: text,
} as const satisfies Record<keyof APIPollAnswer, Fate>;

export const stickerFields = {
  id: media,
  format_type: media,
  name: text,
} as const satisfies Record<keyof APIStickerItem, Fate>;

/** Decides about the counts of reactions in a message that is read from the history. */
const reactionFields = {
  count: nothing('each reaction is reported as an event'),
  count_details: nothing('each reaction is reported as an event'),
  emoji: nothing('each reaction is reported as an event'),
  me: nothing('each reaction is reported as an event'),
  me_burst: forDisplay,
  burst_colors: forDisplay,
} as const satisfies Record<keyof APIReaction, Fate>;

/** Decides about pictures and files within components. */
const unfurledMediaFields = {
  url: media,
  proxy_url: media,
  content_type: media,
  attachment_id: fact,
  width: forDisplay,
  height: forDisplay,
  placeholder: forDisplay,
  placeholder_version: forDisplay,
  loading_state: forDisplay,
  flags: forDisplay,
} as const satisfies Record<keyof APIUnfurledMediaItem, Fate>;

const inDialogs = nothing('only a dialog contains it, and Parley opens none');

/** The name of each kind of component is that of the library. */
const componentTypes = {
  ActionRow: text,
  Button: text,
  StringSelect: text,
  SelectMenu: text,
  UserSelect: text,
  RoleSelect: text,
  MentionableSelect: text,
  ChannelSelect: text,
  Section: text,
  TextDisplay: text,
  Container: text,
  Label: text,
  Thumbnail: media,
  MediaGallery: media,
  File: media,
  Separator: forDisplay,
  ContentInventoryEntry: nothing('it shows what somebody plays or listens to'),
  TextInput: inDialogs,
  FileUpload: inDialogs,
  RadioGroup: inDialogs,
  CheckboxGroup: inDialogs,
  Checkbox: inDialogs,
} as const satisfies Record<keyof typeof ComponentType, Fate>;

/** Every table of this file, for the test of their completeness. */
export const contentFates = {
  ...{ messageFields, snapshotFields, embedFields, attachmentFields, stickerFields, reactionFields },
  ...{ pollFields, pollAnswerFields, unfurledMediaFields, componentTypes },
};
