import { readSentText, withComputed } from './entities.ts';
import type { Params } from './params.ts';
import { reactionEmoji } from './reactions.ts';
import { badRequest, type Keyboard, type StandingMessage, type StoredFile } from './types.ts';
import type { ChatState, World } from './world.ts';
import { generalTopic } from './world.ts';

export type Draft = {
  readonly chatId: number;
  readonly threadId: number | undefined;
  readonly draftId: number;
  readonly text: string;
  readonly canStop: boolean;
  readonly keepOnStop: boolean;
  readonly at: number;
};

export type Typing = {
  readonly chatId: number;
  readonly threadId: number | undefined;
  readonly action: string;
  readonly at: number;
};

/** The state that the methods read and write. */
export type Platform = {
  readonly world: World;
  readonly now: () => number;
  readonly drafts: Draft[];
  readonly typing: Typing[];
  readonly visibleDrafts: Map<number, Draft>;
  /** Callback queries that were answered, with the text shown to the person. */
  readonly answeredCallbacks: { readonly id: string; readonly text: string }[];
  commands: readonly { readonly command: string; readonly description: string }[];
  webhookUrl: string;
  readonly dropPending: () => void;
};

export type Outcome = { readonly result: unknown; readonly messageId?: number };
type Method = (platform: Platform, params: Params) => Outcome;

/** All methods that this server answers, except getUpdates, which may wait. */
export const methods: ReadonlyMap<string, Method> = new Map<string, Method>([
  ['getMe', getMe],
  ['deleteWebhook', deleteWebhook],
  ['setWebhook', setWebhook],
  ['getChat', getChat],
  ['getChatMember', getChatMember],
  ['sendMessage', sendMessage],
  ['sendPhoto', (platform, params) => sendFile(platform, params, 'photo')],
  ['sendVideo', (platform, params) => sendFile(platform, params, 'video')],
  ['sendAnimation', (platform, params) => sendFile(platform, params, 'animation')],
  ['sendAudio', (platform, params) => sendFile(platform, params, 'audio')],
  ['sendVoice', (platform, params) => sendFile(platform, params, 'voice')],
  ['sendDocument', (platform, params) => sendFile(platform, params, 'document')],
  ['sendMediaGroup', sendMediaGroup],
  ['editMessageCaption', editMessageCaption],
  ['sendPoll', sendPoll],
  ['pinChatMessage', (platform, params) => pin(platform, params, true)],
  ['unpinChatMessage', (platform, params) => pin(platform, params, false)],
  ['editMessageText', editMessageText],
  ['deleteMessage', deleteMessage],
  ['setMessageReaction', setMessageReaction],
  ['sendChatAction', sendChatAction],
  ['sendMessageDraft', sendMessageDraft],
  ['getFile', getFile],
  ['setMyCommands', setMyCommands],
  ['getMyCommands', (platform) => ({ result: platform.commands })],
  ['answerCallbackQuery', answerCallbackQuery],
]);

function getMe({ world }: Platform): Outcome {
  return {
    result: {
      ...world.bot,
      can_join_groups: true,
      can_read_all_group_messages: true,
      supports_inline_queries: false,
      has_topics_enabled: false,
    },
  };
}

function deleteWebhook(platform: Platform, params: Params): Outcome {
  platform.webhookUrl = '';
  if (params.bool('drop_pending_updates')) platform.dropPending();
  return { result: true };
}

function setWebhook(platform: Platform, params: Params): Outcome {
  platform.webhookUrl = params.text('url');
  return { result: true };
}

function getChat({ world }: Platform, params: Params): Outcome {
  const { chat } = chatOf(world, params);
  return { result: { ...chat, accent_color_id: 0, max_reaction_count: 11 } };
}

function getChatMember({ world }: Platform, params: Params): Outcome {
  const { admins } = chatOf(world, params);
  const userId = params.optionalInt('user_id');
  if (userId === undefined) throw badRequest('invalid user_id specified');
  const user = { id: userId, is_bot: false, first_name: 'Somebody' };
  return { result: { user, status: admins.has(userId) ? 'administrator' : 'member' } };
}

function sendMessage(platform: Platform, params: Params): Outcome {
  const state = chatOf(platform.world, params);
  const text = readSentText(params.text('text'), sentEntities(params, 'entities'), 4096);
  if (text.text === '') throw badRequest('message text is empty');
  return post(platform, state, params, {
    text: text.text,
    entities: withComputed(text),
    fields: keyboardOf(params),
  });
}

type FileField = 'photo' | 'video' | 'animation' | 'audio' | 'voice' | 'document';

function sendFile(platform: Platform, params: Params, field: FileField): Outcome {
  const { world } = platform;
  const state = chatOf(world, params);
  const file = uploaded(world, params, { named: params.text(field), field });
  const problem = problemOf(file, field);
  if (problem !== undefined) throw badRequest(problem);
  const caption = readSentText(params.text('caption'), sentEntities(params, 'caption_entities'), 1024);
  const fields = fileFields(file, field);
  return post(platform, state, params, { text: caption.text, entities: withComputed(caption), file, fields });
}

/** A file whose bytes begin with one of these stands for one that the platform can't show, or doesn't take at all. */
const unfitPhoto = 'unfit photo';
const unfitFile = 'unfit file';

function problemOf({ sizeBytes, beginning }: UploadedAs, field: FileField): string | undefined {
  if (beginning.startsWith(unfitFile)) return 'FILE_PARTS_INVALID';
  const isUnfit = beginning.startsWith(unfitPhoto) || sizeBytes > 10_000_000;
  return field === 'photo' && isUnfit ? 'PHOTO_INVALID_DIMENSIONS' : undefined;
}

function fileFields(file: StoredFile, field: FileField): Readonly<Record<string, unknown>> {
  const shown = { file_id: file.id, file_unique_id: `u${file.id}`, file_size: file.sizeBytes };
  const named = { ...shown, file_name: file.name, mime_type: file.mimeType };
  switch (field) {
    case 'photo':
      return { photo: [{ ...shown, width: 90, height: 90 }] };
    case 'animation':
      // As the Bot API does, for clients that don't know animations.
      return { animation: { ...named, width: 90, height: 90, duration: 1 }, document: named };
    case 'video':
      return { video: { ...named, width: 90, height: 90, duration: 1 } };
    case 'voice':
      return { voice: { ...shown, duration: 1, mime_type: 'audio/ogg' } };
    case 'audio':
      return { audio: { ...named, duration: 1 } };
    default:
      return { document: named };
  }
}

type AlbumItem = { readonly type?: unknown; readonly media?: unknown; readonly caption?: unknown } & Readonly<
  Record<string, unknown>
>;

/** Posts all of the files or, if one of them is refused, none. */
function sendMediaGroup(platform: Platform, params: Params): Outcome {
  const { world } = platform;
  const state = chatOf(world, params);
  const items = params.json('media');
  if (!Array.isArray(items)) throw badRequest("can't parse media JSON object");
  if (items.length < 2 || items.length > 10) throw badRequest('wrong number of messages in the album');
  const types = new Set(items.map(({ type }: AlbumItem) => (type === 'video' ? 'photo' : type)));
  if (types.size > 1) throw badRequest(`can't use the media of the specified type in the album`);
  const contents = items.map(({ type, media, caption, ...item }: AlbumItem, index) => {
    const field = type as FileField;
    if (!['photo', 'video', 'audio', 'document'].includes(field))
      throw badRequest(`can't use the media of the specified type in the album`);
    const file = uploaded(world, params, { named: String(media ?? ''), field: 'media' });
    const problem = problemOf(file, field);
    if (problem !== undefined)
      throw badRequest(`failed to send message #${index + 1} with the error message "${problem}"`);
    const text = readSentText(String(caption ?? ''), item.caption_entities, 1024);
    return { text: text.text, entities: withComputed(text), file, fields: fileFields(file, field) };
  });
  const group = { media_group_id: String(platform.now()) };
  const sent = contents.map((content) =>
    post(platform, state, params, { ...content, fields: { ...content.fields, ...group } }),
  );
  return { result: sent.map(({ result }) => result), messageId: sent[0]?.messageId ?? 0 };
}

function editMessageCaption(platform: Platform, params: Params): Outcome {
  const { world } = platform;
  const state = chatOf(world, params);
  const messageId = messageIdOf(params);
  const standing = state.messages.get(messageId);
  if (standing === undefined) throw badRequest('message to edit not found');
  if (standing.from?.id !== world.bot.id) throw badRequest("message can't be edited");
  if (standing.file === undefined) throw badRequest('there is no caption in the message to edit');
  const caption = readSentText(params.text('caption'), sentEntities(params, 'caption_entities'), 1024);
  const edited = world.edit(state, messageId, caption.text, withComputed(caption), keyboardOf(params));
  return { result: edited.message, messageId };
}

function sendPoll(platform: Platform, params: Params): Outcome {
  const state = chatOf(platform.world, params);
  const question = params.text('question');
  if (question === '') throw badRequest('poll question must be non-empty');
  if (question.length > 300) throw badRequest('poll question length must not exceed 300');
  const given = params.json('options');
  const options = (Array.isArray(given) ? given : []).map((option) => String(option?.text ?? ''));
  if (options.length < 1) throw badRequest('poll must have at least 1 option');
  if (options.length > 12) throw badRequest("poll can't have more than 12 options");
  if (options.includes('')) throw badRequest('poll options must be non-empty');
  if (options.some((text) => text.length > 100)) throw badRequest('poll options length must not exceed 100');
  const period = params.optionalInt('open_period');
  if (period !== undefined && (period < 5 || period > 2_628_000))
    throw badRequest("poll can't be closed that late");
  const poll = {
    id: String(platform.now()),
    question,
    options: options.map((text, index) => ({ persistent_id: String(index), text, voter_count: 0 })),
    total_voter_count: 0,
    is_closed: false,
    is_anonymous: params.has('is_anonymous') ? params.bool('is_anonymous') : true,
    type: 'regular',
    allows_multiple_answers: params.bool('allows_multiple_answers'),
    allows_revoting: true,
    members_only: false,
    ...(period !== undefined && { open_period: period }),
  };
  return post(platform, state, params, { text: '', entities: [], fields: { poll } });
}

function pin(platform: Platform, params: Params, isPinned: boolean): Outcome {
  const state = chatOf(platform.world, params);
  const messageId = messageIdOf(params);
  if (!state.messages.has(messageId)) throw badRequest(`message to ${isPinned ? 'pin' : 'unpin'} not found`);
  if (state.chat.type !== 'private' && state.botStatus !== 'administrator')
    throw badRequest('not enough rights to manage pinned messages in the chat');
  if (isPinned) state.pinned.add(messageId);
  else state.pinned.delete(messageId);
  return { result: true, messageId };
}

type UploadedAs = StoredFile & { readonly beginning: string };

function uploaded(
  world: World,
  params: Params,
  { named, field }: { readonly named: string; readonly field: string },
): UploadedAs {
  const known = world.files.get(named);
  if (known !== undefined) return { ...known, beginning: '' };
  const upload = params.files.get(named.startsWith('attach://') ? named.slice(9) : field);
  if (upload === undefined) throw badRequest(`there is no ${field} in the request`);
  if (upload.bytes.length === 0) throw badRequest('file must be non-empty');
  const file = world.addFile({
    name: upload.name,
    mimeType: 'application/octet-stream',
    bytes: upload.bytes,
  });
  return { ...file, beginning: Buffer.from(upload.bytes.subarray(0, 16)).toString('latin1') };
}

type Content = Pick<StandingMessage, 'text' | 'entities'> & {
  readonly file?: StoredFile;
  readonly fields?: Readonly<Record<string, unknown>>;
};

function post(platform: Platform, state: ChatState, params: Params, content: Content): Outcome {
  const threadId = readThread(state, params);
  const replyTo = readReply(state, params);
  const message = platform.world.add(state, {
    from: platform.world.bot,
    ...content,
    ...(threadId === undefined ? {} : { threadId }),
    ...(replyTo === undefined ? {} : { replyTo }),
  });
  platform.visibleDrafts.delete(state.chat.id);
  return { result: message.message, messageId: message.messageId };
}

/** Reads the thread id. The General topic must be omitted; an id that isn't a topic is refused as well. */
function readThread(state: ChatState, params: Params): number | undefined {
  const threadId = params.optionalInt('message_thread_id');
  if (threadId === undefined) return undefined;
  if (threadId === generalTopic || !state.topics.has(threadId)) throw badRequest('message thread not found');
  return threadId;
}

function readReply(state: ChatState, params: Params): number | undefined {
  const reply = params.json('reply_parameters');
  if (reply === undefined) return undefined;
  if (typeof reply !== 'object' || reply === null)
    throw badRequest("can't parse reply parameters: expected an Object");
  const { message_id: id, allow_sending_without_reply: mayMiss } = reply as Record<string, unknown>;
  if (typeof id !== 'number')
    throw badRequest('can\'t parse reply parameters: Can\'t find field "message_id"');
  if (state.messages.has(id)) return id;
  if (mayMiss === true) return undefined;
  throw badRequest('message to be replied not found');
}

function editMessageText(platform: Platform, params: Params): Outcome {
  const state = chatOf(platform.world, params);
  const messageId = messageIdOf(params);
  const standing = state.messages.get(messageId);
  if (standing === undefined) throw badRequest('message to edit not found');
  if (standing.from?.id !== platform.world.bot.id) throw badRequest("message can't be edited");
  if (standing.file !== undefined) throw badRequest('there is no text in the message to edit');
  const text = readSentText(params.text('text'), sentEntities(params, 'entities'), 4096);
  if (text.text === '') throw badRequest('message text is empty');
  const entities = withComputed(text);
  const keyboard = keyboardOf(params);
  const hasSameKeyboard =
    JSON.stringify(standing.message.reply_markup) === JSON.stringify(keyboard.reply_markup);
  if (
    hasSameKeyboard &&
    standing.text === text.text &&
    JSON.stringify(standing.entities) === JSON.stringify(entities)
  ) {
    throw badRequest(
      'message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message',
    );
  }
  return { result: platform.world.edit(state, messageId, text.text, entities, keyboard).message, messageId };
}

/** Returns the buttons under a message. A message that is sent or edited without buttons has none. */
function keyboardOf(params: Params): { readonly reply_markup?: Keyboard } {
  const markup = params.json('reply_markup');
  if (markup === undefined) return {};
  const { inline_keyboard: rows } = markup as Partial<Keyboard>;
  if (!Array.isArray(rows)) throw badRequest("can't parse reply keyboard markup JSON object");
  for (const { text, callback_data: data } of (rows as Keyboard['inline_keyboard']).flat()) {
    if (text === undefined || text === '') throw badRequest('inline keyboard button text must be non-empty');
    const bytes = Buffer.byteLength(data ?? '');
    if (bytes < 1 || bytes > 64) throw badRequest('BUTTON_DATA_INVALID');
  }
  return rows.flat().length === 0 ? {} : { reply_markup: markup as Keyboard };
}

function deleteMessage(platform: Platform, params: Params): Outcome {
  const state = chatOf(platform.world, params);
  const messageId = messageIdOf(params);
  const standing = state.messages.get(messageId);
  if (standing === undefined) throw badRequest('message to delete not found');
  const isOld = platform.now() - standing.at > 48 * 60 * 60 * 1000;
  const isForeign = standing.from?.id !== platform.world.bot.id && state.chat.type !== 'private';
  if (isOld || (isForeign && state.botStatus !== 'administrator'))
    throw badRequest("message can't be deleted");
  platform.world.delete(state, messageId);
  return { result: true, messageId };
}

function setMessageReaction(platform: Platform, params: Params): Outcome {
  const state = chatOf(platform.world, params);
  const messageId = messageIdOf(params);
  const reactions = params.json('reaction') ?? [];
  if (!Array.isArray(reactions)) throw badRequest("can't parse reaction types JSON object");
  if (reactions.length > 1) throw badRequest('REACTIONS_TOO_MANY');
  const [first] = reactions as readonly { readonly type?: unknown; readonly emoji?: unknown }[];
  const emoji = first?.emoji;
  if (
    first !== undefined &&
    (first.type !== 'emoji' || typeof emoji !== 'string' || !reactionEmoji.has(emoji))
  )
    throw badRequest('REACTION_INVALID');
  platform.world.react(state, messageId, typeof emoji === 'string' ? emoji : undefined);
  return { result: true, messageId };
}

const actions = new Set(
  'typing upload_photo record_video upload_video record_voice upload_voice upload_document choose_sticker find_location record_video_note upload_video_note'.split(
    ' ',
  ),
);

/** Unlike a send, it accepts the General topic's id. */
function sendChatAction(platform: Platform, params: Params): Outcome {
  const state = chatOf(platform.world, params);
  const action = params.text('action');
  if (!actions.has(action)) throw badRequest('wrong parameter action in request');
  const threadId = params.optionalInt('message_thread_id');
  const isGeneral = threadId === generalTopic && state.chat.is_forum === true;
  if (threadId !== undefined && !isGeneral && !state.topics.has(threadId))
    throw badRequest('message thread not found');
  platform.typing.push({ chatId: state.chat.id, threadId, action, at: platform.now() });
  return { result: true };
}

function sendMessageDraft(platform: Platform, params: Params): Outcome {
  const state = chatOf(platform.world, params);
  if (state.chat.type !== 'private') throw badRequest('TEXTDRAFT_PEER_INVALID');
  const draftId = params.optionalInt('draft_id');
  if (draftId === undefined || draftId === 0) throw badRequest('draft_id must be non-zero');
  const { text } = readSentText(params.text('text'), sentEntities(params, 'entities'), 4096);
  const threadId = readThread(state, params);
  const canStop = params.bool('can_stop');
  const keepOnStop = params.bool('keep_on_stop');
  const draft = { chatId: state.chat.id, threadId, draftId, text, canStop, keepOnStop, at: platform.now() };
  platform.drafts.push(draft);
  platform.visibleDrafts.set(state.chat.id, draft);
  return { result: true };
}

function getFile({ world }: Platform, params: Params): Outcome {
  const file = world.files.get(params.text('file_id'));
  if (file === undefined) throw badRequest('invalid file_id');
  if (file.sizeBytes > 20 * 1024 * 1024) throw badRequest('file is too big');
  const { id, path, sizeBytes } = file;
  return { result: { file_id: id, file_unique_id: `u${id}`, file_size: sizeBytes, file_path: path } };
}

function setMyCommands(platform: Platform, params: Params): Outcome {
  const commands = params.json('commands');
  if (!Array.isArray(commands)) throw badRequest("can't parse commands JSON object");
  if (commands.length > 100) throw badRequest('BOT_COMMANDS_TOO_MUCH');
  for (const { command, description } of commands as readonly Record<string, unknown>[]) {
    if (typeof command !== 'string' || !/^[a-z0-9_]{1,32}$/.test(command))
      throw badRequest('BOT_COMMAND_INVALID');
    if (typeof description !== 'string' || description.length < 1 || description.length > 256)
      throw badRequest('BOT_COMMAND_DESCRIPTION_INVALID');
  }
  platform.commands = commands;
  return { result: true };
}

function answerCallbackQuery(platform: Platform, params: Params): Outcome {
  if (!params.has('callback_query_id'))
    throw badRequest('query is too old and response timeout expired or query ID is invalid');
  platform.answeredCallbacks.push({ id: params.text('callback_query_id'), text: params.text('text') });
  return { result: true };
}

function chatOf(world: World, params: Params): ChatState {
  if (!params.has('chat_id')) throw badRequest('chat_id is empty');
  const id = Number(params.text('chat_id'));
  if (!Number.isSafeInteger(id)) throw badRequest('chat not found');
  return world.writable(id);
}

function messageIdOf(params: Params): number {
  const id = params.optionalInt('message_id');
  if (id === undefined || id <= 0) throw badRequest('message identifier is not specified');
  return id;
}

/**
 * Reads the entities. This server only knows entities as markup; a parse mode would need a parser, so it is explicitly
 * refused.
 */
function sentEntities(params: Params, name: string): unknown {
  if (params.has('parse_mode'))
    throw badRequest("can't parse entities: this server reads entities only, not parse_mode");
  return params.json(name);
}
