/**
 * Decides what becomes of each event of the gateway, each kind of message and each kind of interaction. Like the tables of
 * `content-fates.ts`, these are as complete as the library's types.
 */
import type {
  APIBaseInteraction,
  APIInteraction,
  GatewayDispatchEvents,
  InteractionType as InteractionTypes,
  MessageType as MessageTypes,
} from 'discord-api-types/v10';
import type { Fate } from './content-fates.ts';

const event = { as: 'event' } as const;
const fact = { as: 'fact' } as const;
const nothing = (why: string) => ({ as: 'nothing', why }) as const;

/** An `event` reaches the intake; a `fact` is kept by the directory; anything else isn't reported. */
export type EventFate = Exclude<Fate, { as: 'text' | 'media' }> | { readonly as: 'event' };

const unasked = (intent: string) => nothing(`Parley doesn’t ask for it (${intent})`);
const administration = nothing('it is about how a server is run, not about what is said there');
const ofVoice = nothing('Parley takes no part in voice channels');
const ofSales = nothing('Parley sells nothing');

const dispatchEvents = {
  MessageCreate: event,
  MessageUpdate: event,
  MessageDelete: event,
  MessageDeleteBulk: event,
  MessageReactionAdd: event,
  MessageReactionRemove: event,
  MessagePollVoteAdd: event,
  MessagePollVoteRemove: event,
  InteractionCreate: event,
  GuildCreate: event,
  GuildDelete: event,
  ChannelDelete: event,
  ThreadCreate: fact,
  ChannelCreate: fact,
  ChannelUpdate: fact,
  GuildMemberUpdate: fact,
  GuildRoleCreate: fact,
  GuildRoleDelete: fact,
  GuildRoleUpdate: fact,
  GuildUpdate: fact,
  Ready: fact,
  Resumed: fact,
  ThreadDelete: fact,
  ThreadListSync: fact,
  ThreadUpdate: fact,
  UserUpdate: fact,
  MessageReactionRemoveAll: nothing('it doesn’t say whose reactions they were'),
  MessageReactionRemoveEmoji: nothing('it doesn’t say whose reactions they were'),
  ThreadMembersUpdate: nothing('who follows a thread changes no words'),
  ThreadMemberUpdate: nothing('who follows a thread changes no words'),
  ChannelPinsUpdate: nothing('a pin changes no words'),
  TypingStart: unasked('message typing'),
  PresenceUpdate: unasked('presences'),
  GuildMemberAdd: unasked('server members'),
  GuildMemberRemove: unasked('server members'),
  GuildMembersChunk: unasked('server members'),
  AutoModerationActionExecution: unasked('auto moderation'),
  AutoModerationRuleCreate: unasked('auto moderation'),
  AutoModerationRuleDelete: unasked('auto moderation'),
  AutoModerationRuleUpdate: unasked('auto moderation'),
  GuildScheduledEventCreate: unasked('scheduled events'),
  GuildScheduledEventDelete: unasked('scheduled events'),
  GuildScheduledEventUpdate: unasked('scheduled events'),
  GuildScheduledEventUserAdd: unasked('scheduled events'),
  GuildScheduledEventUserRemove: unasked('scheduled events'),
  ApplicationCommandPermissionsUpdate: administration,
  ChannelInfo: administration,
  GuildAuditLogEntryCreate: administration,
  GuildBanAdd: administration,
  GuildBanRemove: administration,
  GuildEmojisUpdate: administration,
  GuildIntegrationsUpdate: administration,
  GuildStickersUpdate: administration,
  IntegrationCreate: administration,
  IntegrationDelete: administration,
  IntegrationUpdate: administration,
  InviteCreate: administration,
  InviteDelete: administration,
  WebhooksUpdate: administration,
  RateLimited: nothing('it answers requests that Parley doesn’t make'),
  GuildSoundboardSoundCreate: ofVoice,
  GuildSoundboardSoundDelete: ofVoice,
  GuildSoundboardSoundsUpdate: ofVoice,
  GuildSoundboardSoundUpdate: ofVoice,
  SoundboardSounds: ofVoice,
  StageInstanceCreate: ofVoice,
  StageInstanceDelete: ofVoice,
  StageInstanceUpdate: ofVoice,
  VoiceChannelEffectSend: ofVoice,
  VoiceChannelStartTimeUpdate: ofVoice,
  VoiceChannelStatusUpdate: ofVoice,
  VoiceServerUpdate: ofVoice,
  VoiceStateUpdate: ofVoice,
  EntitlementCreate: ofSales,
  EntitlementDelete: ofSales,
  EntitlementUpdate: ofSales,
  SubscriptionCreate: ofSales,
  SubscriptionDelete: ofSales,
  SubscriptionUpdate: ofSales,
} as const satisfies Record<keyof typeof GatewayDispatchEvents, EventFate>;

export type MessageFate =
  /** Written by a person or a program. */
  | { readonly as: 'message' }
  /** Shown to the next turn there; it starts none. */
  | { readonly as: 'background' }
  /** A note by Discord itself, refused under this name. */
  | { readonly as: 'refused'; readonly note: string };

const message = { as: 'message' } as const;
const background = { as: 'background' } as const;
/** At most 64 characters. */
const note = (what: string) => ({ as: 'refused', note: `Discord’s note: ${what}` }) as const;

export const messageTypes = {
  Default: message,
  Reply: message,
  ChatInputCommand: message,
  ContextMenuCommand: message,
  ThreadStarterMessage: background,
  PollResult: background,
  RecipientAdd: note('somebody joined a group chat'),
  RecipientRemove: note('somebody left a group chat'),
  Call: note('a call'),
  ChannelNameChange: note('the channel has a new name'),
  ChannelIconChange: note('the channel has a new icon'),
  ChannelPinnedMessage: note('a message was pinned'),
  UserJoin: note('somebody joined'),
  GuildBoost: note('a boost'),
  GuildBoostTier1: note('a boost'),
  GuildBoostTier2: note('a boost'),
  GuildBoostTier3: note('a boost'),
  ChannelFollowAdd: note('the channel follows another one'),
  GuildDiscoveryDisqualified: note('about server discovery'),
  GuildDiscoveryRequalified: note('about server discovery'),
  GuildDiscoveryGracePeriodInitialWarning: note('about server discovery'),
  GuildDiscoveryGracePeriodFinalWarning: note('about server discovery'),
  ThreadCreated: note('somebody started a thread'),
  GuildInviteReminder: note('a hint to invite people'),
  AutoModerationAction: note('a message was blocked'),
  RoleSubscriptionPurchase: note('somebody subscribed to a role'),
  InteractionPremiumUpsell: note('an offer to subscribe'),
  StageStart: note('a stage began'),
  StageEnd: note('a stage ended'),
  StageSpeaker: note('somebody speaks on a stage'),
  StageRaiseHand: note('somebody raised a hand on a stage'),
  StageTopic: note('a stage has a new topic'),
  GuildApplicationPremiumSubscription: note('a subscription to an application'),
  GuildIncidentAlertModeEnabled: note('security actions are on'),
  GuildIncidentAlertModeDisabled: note('security actions are off'),
  GuildIncidentReportRaid: note('a raid was reported'),
  GuildIncidentReportFalseAlarm: note('a report was a false alarm'),
  PurchaseNotification: note('somebody bought something'),
} as const satisfies Record<keyof typeof MessageTypes, MessageFate>;

export type InteractionFate =
  | { readonly as: 'message' | 'button' }
  | { readonly as: 'refused'; readonly note: string };

const refused = (what: string) => ({ as: 'refused', note: what }) as const;

export const interactionTypes = {
  ApplicationCommand: { as: 'message' },
  MessageComponent: { as: 'button' },
  ApplicationCommandAutocomplete: refused('suggestions for a command; Parley offers none'),
  ModalSubmit: refused('a dialog; Parley opens none'),
  Ping: refused('a ping of a webhook; Parley has none'),
} as const satisfies Record<keyof typeof InteractionTypes, InteractionFate>;

/** Members of every interaction. */
const interactionFields = {
  id: fact,
  application_id: fact,
  type: fact,
  token: fact,
  data: event,
  message: event,
  channel: fact,
  channel_id: fact,
  guild_id: fact,
  member: fact,
  user: fact,
  app_permissions: nothing('the answer to a send says what the bot may do'),
  attachment_size_limit: nothing('files are sent as messages, under their limit'),
  authorizing_integration_owners: nothing('commands are registered for the bot itself'),
  context: nothing('the channel says where it is'),
  entitlements: ofSales,
  guild: nothing('the server reports itself'),
  guild_locale: nothing('Parley’s language is configured'),
  locale: nothing('Parley’s language is configured'),
  version: nothing('it is always 1'),
} as const satisfies Record<keyof APIBaseInteraction<InteractionTypes, unknown>, EventFate>;

/** Members of an interaction's data, of every kind of interaction. */
const interactionDataFields = {
  name: event,
  options: event,
  custom_id: event,
  type: fact,
  id: nothing('commands are known by their names'),
  guild_id: nothing('the interaction says where it is'),
  component_type: nothing('Parley’s messages contain only buttons'),
  values: nothing('Parley’s messages contain no menus'),
  components: nothing('Parley opens no dialogs'),
  resolved: nothing('Parley’s commands take only text'),
  target_id: nothing('Parley registers no menu commands'),
} as const satisfies Record<InteractionDataKey, EventFate>;

type KeysOf<Union> = Union extends unknown ? keyof Union : never;
type InteractionDataKey = KeysOf<NonNullable<APIInteraction['data']>>;

/** Every table of this file, for the test of their completeness. */
export const eventFates = {
  ...{ dispatchEvents, messageTypes, interactionTypes, interactionFields, interactionDataFields },
};
