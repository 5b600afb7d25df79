import { invalidForm, refuse } from './errors.ts';
import type { Interaction } from './interactions.ts';
import { usersAllowed } from './mentions.ts';
import { type Draft, readMessageBody, requireContent } from './message-body.ts';
import { type Answer, idOf, noContent, ok, type Platform, type Request, type Routes } from './platform.ts';
import { addAsBot, editAsBot } from './posting.ts';
import { messageFlags, messageTypes, type StandingMessage, type Wire } from './types.ts';

const answers = { message: 4, deferred: 5, deferredUpdate: 6, update: 7, choices: 8, modal: 9 } as const;

/** First answers, their edits, and follow-ups. The token in the path is all the authorization they need. */
export const interactionRoutes: Routes = {
  'POST /interactions/:interaction/:token/callback': answerFirst,
  'POST /webhooks/:application/:token': followUp,
  'GET /webhooks/:application/:token/messages/:message': (request) =>
    ok(request.platform.render.message(found(request).message, true)),
  'PATCH /webhooks/:application/:token/messages/:message': edit,
  'DELETE /webhooks/:application/:token/messages/:message': remove,
};

function answerFirst(request: Request): Answer {
  const { platform, body, call } = request;
  const interaction = platform.interactions.unanswered(idOf(request, 'interaction'), idOf(request, 'token'));
  const kind = Number(body.type);
  const isPress = interaction.type === 3;
  const needsPress = kind === answers.deferredUpdate || kind === answers.update;
  if (!Object.values(answers).some((one) => one === kind) || (needsPress && !isPress))
    throw invalidForm('type', 'BASE_TYPE_CHOICES', 'This interaction cannot be answered with this type.');
  const draft = readMessageBody((body.data ?? {}) as Wire, request.files, {
    under: 'data.',
    allowed: usersAllowed,
  });
  if (kind === answers.message) requireContent(draft);
  interaction.answer = kind;
  interaction.answeredAt = platform.now();
  const message = apply(platform, interaction, kind, draft);
  if (message !== undefined) call.messageId = message.id;
  if (request.query.get('with_response') !== 'true') return noContent;
  const { id, type } = interaction;
  const told = { id, type, channel_id: interaction.channel.id };
  const resource = message === undefined ? {} : { message: platform.render.message(message, true) };
  return ok({
    interaction: {
      ...told,
      ...(message === undefined ? {} : { response_message_id: message.id }),
      response_message_loading: kind === answers.deferred,
      response_message_ephemeral: ((draft.flags ?? 0) & messageFlags.ephemeral) !== 0,
    },
    resource: { type: kind, ...resource },
  });
}

function apply(platform: Platform, interaction: Interaction, kind: number, draft: Draft) {
  if (kind === answers.message || kind === answers.deferred) {
    const loading = kind === answers.deferred ? messageFlags.loading : 0;
    const shown = { ...draft, flags: (draft.flags ?? 0) | loading };
    const message = addAnswer(platform, interaction, shown);
    interaction.originalId = message.id;
    return message;
  }
  const { message } = interaction;
  if (message === undefined) return undefined;
  interaction.originalId = message.id;
  return kind === answers.update ? editAsBot(platform, current(platform, message), draft) : undefined;
}

function addAnswer(platform: Platform, interaction: Interaction, draft: Draft): StandingMessage {
  const { channel, from, id, type } = interaction;
  const isEphemeral = ((draft.flags ?? 0) & messageFlags.ephemeral) !== 0;
  const metadata = { id, type, user: platform.render.user(from), authorizing_integration_owners: {} };
  const message = addAsBot(platform, channel, draft, {
    type: type === 2 ? messageTypes.chatInputCommand : messageTypes.default,
    ephemeralFor: isEphemeral ? from.id : undefined,
    fields: {
      application_id: platform.world.bot.id,
      webhook_id: platform.world.bot.id,
      interaction_metadata: metadata,
    },
  });
  interaction.messageIds.push(message.id);
  return message;
}

/** Adds a follow-up; the first one to a deferred answer replaces it. */
function followUp(request: Request): Answer {
  const { platform, call } = request;
  const interaction = owned(request);
  const draft = readMessageBody(request.body, request.files, { allowed: usersAllowed });
  requireContent(draft);
  const original = loadingAnswer(platform, interaction);
  const message =
    original === undefined
      ? addAnswer(platform, interaction, draft)
      : editAsBot(platform, original, { ...draft, flags: original.flags & ~messageFlags.loading });
  call.messageId = message.id;
  return ok(platform.render.message(message, true));
}

function loadingAnswer({ world }: Platform, { channel, originalId }: Interaction) {
  const message = originalId === undefined ? undefined : world.channel(channel.id).messages.get(originalId);
  return message !== undefined && (message.flags & messageFlags.loading) !== 0 ? message : undefined;
}

function owned(request: Request): Interaction {
  if (idOf(request, 'application') !== request.platform.world.bot.id) throw refuse('unknownWebhook');
  return request.platform.interactions.byToken(idOf(request, 'token'));
}

function found(request: Request): { readonly interaction: Interaction; readonly message: StandingMessage } {
  const interaction = owned(request);
  const named = idOf(request, 'message');
  const id = named === '@original' ? interaction.originalId : named;
  const isItsOwn = id === interaction.originalId || (id !== undefined && interaction.messageIds.includes(id));
  const message = id === undefined ? undefined : interaction.channel.messages.get(id);
  if (!isItsOwn || message === undefined) throw refuse('unknownMessage');
  return { interaction, message };
}

function edit(request: Request): Answer {
  const { platform, call } = request;
  const { message } = found(request);
  const draft = readMessageBody(request.body, request.files, { allowed: usersAllowed });
  call.messageId = message.id;
  const flags = (message.flags & ~messageFlags.loading) | ((draft.flags ?? 0) & ~messageFlags.loading);
  return ok(platform.render.message(editAsBot(platform, message, { ...draft, flags }), true));
}

function remove(request: Request): Answer {
  const { world, events } = request.platform;
  const { message } = found(request);
  request.call.messageId = message.id;
  world.delete(message);
  if (message.ephemeralFor === undefined) events.messageDeleted(message);
  return noContent;
}

const current = ({ world }: Platform, message: StandingMessage): StandingMessage =>
  world.channel(message.channelId).messages.get(message.id) ?? message;
