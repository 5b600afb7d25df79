/**
 * A channel: programs post messages to a webhook, and read the answers from a route. Its settings, in parley.config.json:
 * "plugins": { "mailbox": { "config": { "secret": "${MAILBOX_SECRET}" } } }, and "owners": ["mailbox:ann"].
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import {
  accountId,
  channelId,
  conversationId,
  definePlugin,
  eventKey,
  type Intake,
  messageId,
  peerId,
  z,
} from 'parley/plugin';

const channel = channelId('mailbox');
const account = accountId('mailbox');

/** What a program posts. Its id is the program's own: a repeated one is the same message. */
const posted = z.object({ id: z.string().max(100), from: z.string().max(50), text: z.string().max(10_000) });

export const plugin = definePlugin({
  id: 'mailbox',
  configSchema: z.strictObject({ secret: z.string().min(16) }),
  setup(api, { secret }) {
    let intake: Intake | undefined;
    api.channels.register({
      id: channel,
      capabilities: {
        text: { maxLength: 10_000 },
        ...{ canReact: false, canQuote: false, canEdit: false, canDelete: false, canPress: false },
        preview: { dm: 'none', group: 'none' },
        previewIntervalMs: { dm: 1000, group: 1000 },
        isSessionBound: false,
        // The key of an answer stays the same, so an answer that is sent twice is stored once.
        repeatSafeMs: 86_400_000,
      },
      configSchema: z.unknown(),
      create: () => ({
        identify: async () => ({ id: account, name: 'mailbox' }),
        start: async (given) => {
          intake = given;
          given.trouble(undefined);
        },
        stop: async () => {
          intake = undefined;
        },
        send: async ({ key, route, content }) => {
          if (content.kind !== 'text') return { kind: 'sent', receipts: [] };
          const digest = createHash('sha256').update(key).digest('hex');
          const value = { text: content.text.text };
          await api.store.commit([{ kind: 'put', key: `${route.conversation}/${digest}`, value }]);
          return { kind: 'sent', receipts: [messageId(digest)] };
        },
      }),
    });
    api.routes.register({
      method: 'POST',
      path: 'webhook/messages',
      handle: async ({ headers, body }) => {
        if (!isSame(headers['x-mailbox-secret'], secret)) return { status: 401 };
        const { data } = posted.safeParse(JSON.parse(String(body)));
        if (data === undefined) return { status: 400 };
        // Another process may have the channel; the program posts it again.
        if (intake === undefined) return { status: 503 };
        const { id, from, text } = data;
        const [acceptance] = await intake.accept({
          events: [
            {
              eventKey: eventKey(`message:${from}:${id}`),
              sentAt: Date.now(),
              route: { channel, account, conversation: conversationId(from) },
              chat: { kind: 'dm' },
              sender: { id: peerId(from), name: from, isBot: false, isSelf: false },
              event: {
                ...{ kind: 'message', messageId: messageId(id), provenance: 'typed', text, attachments: [] },
                ...{ mentionsBot: false, repliesToBot: false },
              },
            },
          ],
        });
        // Answered only now: the message is stored.
        return { status: 202, body: { result: acceptance?.kind } };
      },
    });
    api.routes.register({
      method: 'GET',
      path: 'answers',
      handle: async ({ query }) => {
        const stored = await api.store.list(`${String(query.to)}/`);
        return { body: stored.map(({ value }) => value) };
      },
    });
  },
});

function isSame(given: unknown, secret: string): boolean {
  const [one, other] = [String(given), secret].map((text) => createHash('sha256').update(text).digest());
  return one !== undefined && other !== undefined && timingSafeEqual(one, other);
}
