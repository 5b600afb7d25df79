/**
 * The fate of every field of a message and every kind of update that the Bot API has. The tables are tied to the
 * library's types, so that an update of the library doesn't compile until somebody has decided about its new fields.
 * Run time reads the same tables: what is content, what only describes it, and why something isn't read.
 */
import type {
  CallbackQuery,
  Chat,
  ExternalReplyInfo,
  Message,
  MessageOrigin,
  ReactionType,
  TextQuote,
  Update,
} from 'grammy/types';

export type Fate =
  /** Its words are the text of the message. */
  | 'text'
  /** A line describes it to the model (`describe.ts`). */
  | 'line'
  /** A line reports it to the next turn. Telegram shows it as a notice, not as a message, so it starts no turn. */
  | 'note'
  /** It becomes an attachment. */
  | 'media'
  /** It becomes an event of its own. */
  | 'event'
  /** It is read as part of another field, or says who sent the message, where, when and how: no content by itself. */
  | 'about'
  /** It isn't read, for a reason that a person can understand. */
  | `refused: ${string}`;

const membership = 'refused: reports about members and owners aren’t read';
const changes = 'refused: reports about changed settings of a chat aren’t read';
const topics = 'refused: reports about topics aren’t read';
const posts = 'refused: suggested posts of channels aren’t read';
const grants = 'refused: reports about permissions for the bot aren’t read';
const money = 'refused: payments to the bot aren’t handled';
const business = 'refused: messages of business accounts aren’t read';
const channels = 'refused: posts in channels aren’t read';
const votes = 'refused: votes reach only the bot that sent the poll, and Parley sends none';
const inline = 'refused: the bot can’t be used inline';
const boosts = 'refused: boosts aren’t read';

/** Decided for every field of a message, whatever its variant. */
export const messageFields = {
  message_id: 'about',
  message_thread_id: 'about',
  from: 'about',
  sender_chat: 'about',
  sender_tag: 'about',
  sender_boost_count: 'about',
  sender_business_bot: 'about',
  author_signature: 'about',
  date: 'about',
  edit_date: 'about',
  chat: 'about',
  is_topic_message: 'about',
  direct_messages_topic: 'about',
  business_connection_id: 'about',
  guest_query_id: 'about',
  receiver_user: 'about',
  ephemeral_message_id: 'about',
  forward_origin: 'about',
  is_automatic_forward: 'about',
  via_bot: 'about',
  guest_bot_caller_user: 'about',
  guest_bot_caller_chat: 'about',
  is_from_offline: 'about',
  is_paid_post: 'about',
  paid_star_count: 'about',
  suggested_post_info: 'about',
  has_protected_content: 'about',
  has_media_spoiler: 'about',
  show_caption_above_media: 'about',
  link_preview_options: 'about',
  effect_id: 'about',
  media_group_id: 'about',
  reply_to_message: 'about',
  reply_to_checklist_task_id: 'about',
  reply_to_poll_option_id: 'about',
  reply_to_story: 'about',
  external_reply: 'about',
  quote: 'about',
  entities: 'about',
  caption_entities: 'about',
  text: 'text',
  caption: 'text',
  rich_message: 'text',
  animation: 'media',
  audio: 'media',
  document: 'media',
  live_photo: 'media',
  photo: 'media',
  sticker: 'media',
  video: 'media',
  video_note: 'media',
  voice: 'media',
  paid_media: 'line',
  reply_markup: 'line',
  checklist: 'line',
  checklist_tasks_added: 'note',
  checklist_tasks_done: 'note',
  contact: 'line',
  dice: 'line',
  game: 'line',
  gift: 'line',
  gift_upgrade_sent: 'line',
  giveaway: 'line',
  giveaway_created: 'note',
  giveaway_completed: 'note',
  giveaway_winners: 'line',
  invoice: 'line',
  location: 'line',
  poll: 'line',
  poll_option_added: 'note',
  poll_option_deleted: 'note',
  story: 'line',
  successful_payment: 'line',
  unique_gift: 'line',
  users_shared: 'line',
  chat_shared: 'line',
  venue: 'line',
  video_chat_scheduled: 'note',
  video_chat_started: 'note',
  video_chat_ended: 'note',
  video_chat_participants_invited: 'note',
  web_app_data: 'line',
  migrate_to_chat_id: 'event',
  migrate_from_chat_id: 'event',
  new_chat_members: membership,
  left_chat_member: membership,
  chat_owner_left: membership,
  chat_owner_changed: membership,
  community_chat_joined: membership,
  community_chat_added: changes,
  community_chat_removed: changes,
  new_chat_title: changes,
  new_chat_photo: changes,
  delete_chat_photo: changes,
  group_chat_created: changes,
  supergroup_chat_created: changes,
  channel_chat_created: changes,
  chat_background_set: changes,
  message_auto_delete_timer_changed: changes,
  paid_message_price_changed: changes,
  direct_message_price_changed: changes,
  pinned_message: 'refused: pinned messages aren’t read again',
  forum_topic_created: topics,
  forum_topic_edited: topics,
  forum_topic_closed: topics,
  forum_topic_reopened: topics,
  general_forum_topic_hidden: topics,
  general_forum_topic_unhidden: topics,
  suggested_post_approved: posts,
  suggested_post_approval_failed: posts,
  suggested_post_declined: posts,
  suggested_post_paid: posts,
  suggested_post_refunded: posts,
  connected_website: grants,
  write_access_allowed: grants,
  managed_bot_created: grants,
  refunded_payment: money,
  passport_data: 'refused: identity documents are never read',
  proximity_alert_triggered: 'refused: reports about people who come close aren’t read',
  boost_added: boosts,
} as const satisfies Record<keyof Message, Fate>;

/** Fields that the library's types no longer have, but which servers still send. */
const olderFields = {
  forward_date: 'about',
  forward_from: 'about',
  forward_from_chat: 'about',
  forward_from_message_id: 'about',
  forward_sender_name: 'about',
  forward_signature: 'about',
  new_chat_member: membership,
  new_chat_participant: membership,
  left_chat_participant: membership,
  user_shared: 'refused: a newer field names the shared people',
} as const satisfies Record<string, Fate>;

export const updateKinds = {
  update_id: 'about',
  message: 'event',
  edited_message: 'event',
  callback_query: 'event',
  message_reaction: 'event',
  my_chat_member: 'event',
  stopped_message_generation: 'event',
  channel_post: channels,
  edited_channel_post: channels,
  business_connection: business,
  business_message: business,
  edited_business_message: business,
  deleted_business_messages: business,
  guest_message: 'refused: the bot can’t be called as a guest',
  message_reaction_count: 'refused: anonymous reactions name nobody',
  inline_query: inline,
  chosen_inline_result: inline,
  shipping_query: money,
  pre_checkout_query: money,
  purchased_paid_media: money,
  subscription: money,
  poll: votes,
  poll_answer: votes,
  chat_member: membership,
  chat_join_request: membership,
  chat_boost: boosts,
  removed_chat_boost: boosts,
  managed_bot: grants,
} as const satisfies Record<keyof Update, Fate>;

/** A message in another chat that is answered here: its text reaches us only as the chosen `quote`. */
export const externalReplyFields = {
  origin: 'about',
  chat: 'about',
  message_id: 'about',
  link_preview_options: 'about',
  has_media_spoiler: 'about',
  animation: 'media',
  audio: 'media',
  document: 'media',
  live_photo: 'media',
  photo: 'media',
  sticker: 'media',
  video: 'media',
  video_note: 'media',
  voice: 'media',
  paid_media: 'line',
  checklist: 'line',
  contact: 'line',
  dice: 'line',
  game: 'line',
  giveaway: 'line',
  giveaway_winners: 'line',
  invoice: 'line',
  location: 'line',
  poll: 'line',
  story: 'line',
  venue: 'line',
} as const satisfies Record<keyof ExternalReplyInfo, Fate>;

/** Smaller objects whose members all have a place. */
export const smallKinds = {
  quote: { text: 'text', entities: 'about', position: 'about', is_manual: 'about' },
  origin: { user: 'about', hidden_user: 'about', chat: 'about', channel: 'about' },
  reaction: { emoji: 'event', custom_emoji: 'event', paid: 'event' },
  chat: { private: 'about', group: 'about', supergroup: 'about', channel: channels },
  press: {
    id: 'about',
    from: 'about',
    message: 'about',
    chat_instance: 'about',
    data: 'event',
    inline_message_id: inline,
    game_short_name: 'refused: games aren’t played',
  },
} as const satisfies {
  readonly quote: Record<keyof TextQuote, Fate>;
  readonly origin: Record<MessageOrigin['type'], Fate>;
  readonly reaction: Record<ReactionType['type'], Fate>;
  readonly chat: Record<Chat['type'], Fate>;
  readonly press: Record<keyof CallbackQuery, Fate>;
};

/** The fields of a message with this fate. */
export type FieldsOf<Wanted extends Fate> = {
  [Field in keyof typeof messageFields]: (typeof messageFields)[Field] extends Wanted ? Field : never;
}[keyof typeof messageFields];

/** Returns undefined for a field of a message that nobody has decided about, because the types don't have it yet. */
export function fateOf(field: string): Fate | undefined {
  return fateIn(messageFields, field) ?? fateIn(olderFields, field);
}

/** Returns the fate of a kind or a field by one of the tables; undefined if it isn't in it. */
export function fateIn(table: Readonly<Record<string, Fate>>, name: string): Fate | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

/** Returns why something isn't read; undefined if it is. */
export function refusalOf(fate: Fate | undefined): string | undefined {
  return fate?.startsWith('refused: ') ? fate.slice('refused: '.length) : undefined;
}
