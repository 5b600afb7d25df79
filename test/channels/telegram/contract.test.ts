import { threadId } from '#contracts/ids.ts';
import { capabilities } from '../../../channels/telegram/capabilities.ts';
import { startTelegramServer } from '../../platforms/telegram/server.ts';
import { channelContract } from '../channel-contract.ts';
import { shownFile } from '../contract/harness.ts';
import { ada, newAdapter, routeTo, spansOf } from './telegram-setup.ts';

channelContract('telegram', async () => {
  const server = await startTelegramServer();
  server.world.addPrivateChat(ada);
  const group = server.world.addSupergroup('Forum', { isForum: true });
  let latest = 0;
  return {
    capabilities,
    account: String(server.bot.id),
    route: routeTo(server, ada.id),
    newAdapter: () => newAdapter(server),
    strangerAdapter: () => newAdapter(server, { token: '7000001:AAnot-the-right-token' }),
    personSays: async (text) => {
      latest = server.userSends({ from: ada, text }).message.message_id;
    },
    personForwards: async (text) => {
      const forward_origin = { type: 'hidden_user', sender_user_name: 'Bob', date: 1 };
      server.userSends({ from: ada, text, fields: { forward_origin } });
    },
    personEdits: async (text) => void server.people.edits({ chat: ada.id, messageId: latest, text }),
    personReacts: async (emoji, change) => {
      const messageId = latest;
      const states = change === 'put' ? { emoji } : { before: emoji };
      server.people.reacts({ chat: ada.id, from: ada, messageId, ...states });
    },
    botReactions: () => {
      const reaction = server.messages(ada.id).find(({ messageId }) => messageId === latest)?.botReaction;
      return reaction === undefined ? [] : [reaction];
    },
    personSaysInThread: async (text) => {
      const topic = server.world.addTopic(group.chat.id, 'Plans', ada);
      server.userSends({ chat: group.chat.id, from: ada, text, threadId: topic });
      return { ...routeTo(server, group.chat.id), thread: threadId(String(topic)) };
    },
    botEchoes: async (text) => void server.userSends({ chat: ada.id, from: server.bot, text }),
    redeliver: async () => server.updates.redeliver(1),
    unacknowledged: () => server.updates.pending.length,
    sendsMalformed: async () =>
      void server.updates.push('message', { message_id: 'seven', chat: null, date: 'yesterday' }),
    standing: () => {
      const own = server.botMessages(ada.id).filter(({ text }) => text !== 'an echo');
      const shown = own.map(async ({ messageId, text, entities, replyTo, file }) => ({
        messageId: String(messageId),
        quotes: replyTo === undefined ? undefined : String(replyTo),
        text,
        spans: spansOf(entities),
        ...(file && { file: await shownFile(file.name, file.bytes()) }),
      }));
      return Promise.all(shown);
    },
    receivingAway: async () => {
      await server.goAway();
      return () => server.comeBack();
    },
    close: () => server.close(),
    faults: {
      rateLimited: (afterMs) =>
        server.fault(
          {
            kind: 'refuse',
            code: 429,
            description: `Too Many Requests: retry after ${afterMs / 1000}`,
            parameters: { retry_after: afterMs / 1000 },
          },
          { method: 'sendMessage' },
        ),
      unreachable: () => server.people.blocks(ada),
      unreadableMarkup: () =>
        server.fault(
          {
            kind: 'refuse',
            code: 400,
            description: "Bad Request: can't parse entities: unsupported start tag",
          },
          { method: 'sendMessage' },
        ),
      answerLost: () => server.fault({ kind: 'drop-answer' }, { method: 'sendMessage' }),
      answerHangs: async () => {
        server.fault({ kind: 'slow', ms: 60_000 }, { method: 'sendMessage' });
        await server.waitFor(() => server.botMessages(ada.id).length === 1);
      },
      away: async () => {
        await server.goAway();
        return () => server.comeBack();
      },
    },
  };
});
