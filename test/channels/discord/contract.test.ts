import { capabilities } from '../../../channels/discord/capabilities.ts';
import type { StandingMessage } from '../../platforms/discord/types.ts';
import { channelContract } from '../channel-contract.ts';
import { shownFile } from '../contract/harness.ts';
import { setUpDiscord } from './discord-setup.ts';
import { rendered } from './rendered.ts';

const send = { route: 'POST /channels/:channel/messages' };
const history = 'GET /channels/:channel/messages';

channelContract('discord', async () => {
  const { server, newAdapter, route, close } = await setUpDiscord();
  const ada = server.world.addUser('ada', 'Ada');
  const guild = server.world.addGuild('Team', ada);
  const general = server.world.addChannel(guild, 'general');
  const dm = server.world.dmWith(ada);
  const said: StandingMessage[] = [];
  const latest = () => {
    const message = said.at(-1);
    if (message === undefined) throw new Error('nobody has said anything');
    return message;
  };
  return {
    capabilities,
    account: server.bot.id,
    route: route(dm.id),
    newAdapter: () => newAdapter(),
    strangerAdapter: () => newAdapter({ token: `${server.token}-of-somebody-else` }),
    personSays: async (text) => void said.push(server.userSends({ from: ada, text })),
    personForwards: async (text) => {
      const message_reference = { type: 1, message_id: '1', channel_id: general.id };
      const message_snapshots = [{ message: { content: text, attachments: [] } }];
      server.userSends({ from: ada, fields: { message_reference, message_snapshots } });
    },
    personSaysInThread: async (text) => {
      const thread = server.places.startsThread({ parent: general, name: 'plans', owner: ada });
      server.userSends({ from: ada, channel: thread, text });
      return route(general.id, thread.id);
    },
    personEdits: async (text) => void server.people.edits(latest(), text),
    personDeletes: async () => server.people.deletes(latest()),
    personReacts: async (emoji, change) => {
      if (change === 'put') server.people.reacts(latest(), ada, emoji);
      else server.people.takesReactionBack(latest(), ada, emoji);
    },
    botReactions: () => {
      const { reactions = new Map<string, ReadonlySet<string>>() } =
        server.messages(latest().channelId).find(({ id }) => id === latest().id) ?? {};
      return [...reactions].flatMap(([emoji, by]) => (by.has(server.bot.id) ? [emoji] : []));
    },
    botEchoes: async (text) => void server.userSends({ from: server.bot, channel: dm, text }),
    redeliver: async () => server.platform.events.messageCreated(latest()),
    sendsMalformed: async () =>
      server.gateway.dispatch({
        t: 'MESSAGE_CREATE',
        data: () => ({ id: 'seven', channel_id: null, author: 7 }),
      }),
    standing: () => {
      const own = server.botMessages(dm.id).filter(({ text }) => text !== 'an echo');
      const shown = own.map(async ({ id, text, replyTo, files: [file] }) => ({
        ...{ messageId: id, quotes: replyTo, ...rendered(text) },
        ...(file && { file: await shownFile(file.name, file.bytes()) }),
      }));
      return Promise.all(shown);
    },
    close,
    receivingAway: async () => {
      await server.goAway();
      return () => server.comeBack();
    },
    history: {
      // The history is read immediately and answered late, so it doesn't contain what is written meanwhile.
      hold: () => {
        server.fault({ kind: 'slow', ms: 500 }, { route: history });
        const { calls } = server;
        const isAsked = () => calls.some((call) => call.route === history && !call.answered);
        return { asked: server.waitFor(isAsked).then(() => undefined), release: () => undefined };
      },
      refuse: () =>
        server.fault(
          { kind: 'refuse', status: 403, code: 50001, message: 'Missing Access' },
          { route: history, times: 1000 },
        ),
      interrupt: async (meanwhile) => {
        server.gateway.cut({ isResumable: false });
        await meanwhile();
      },
    },
    faults: {
      rateLimited: (retryAfterMs) => server.fault({ kind: 'rate-limit', retryAfterMs }, send),
      unreachable: () => server.people.blocks(ada),
      answerLost: () => server.fault({ kind: 'drop-answer' }, send),
      answerHangs: async () => {
        server.fault({ kind: 'hang', isApplied: true }, send);
        await server.waitFor(() => server.botMessages(dm.id).length === 1);
      },
      away: async () => {
        await server.goAway();
        return () => server.comeBack();
      },
    },
  };
});
