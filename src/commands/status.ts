import { connectionName } from '#contracts/ids.ts';
import { readDisplay } from '../store/lanes/session.ts';
import { readLaneStatus, readSessions } from '../store/reads/read-sessions.ts';
import { dollarText, fillText } from '../texts/chat-texts.ts';
import { anyone, chatCommand, noWords } from './chat-command.ts';
import { queueLine } from './queue.ts';

export const status = chatCommand({
  name: 'status',
  menu: 'statusMenu',
  parse: noWords('status'),
  right: anyone,
  load: async ({ store, models, displayOn }, { lane, envelope, accountName, botName, now }) => {
    const work = await store.read(readLaneStatus, { laneKey: lane.key });
    const [session] = work ? await store.read(readSessions, { ids: [work.sessionId], limit: 1 }) : [];
    const chosen = work ? await store.read(readDisplay, { sessionId: work.sessionId }) : {};
    return {
      agent: lane.agentId,
      model: models.nameFor(lane.agentId, 'turn', session?.model),
      account: connectionName(envelope.route.channel, accountName),
      bot: botName,
      work: work?.isRunning
        ? {
            isPaused: work.parkedAt !== undefined,
            seconds: Math.round((now - (work.parkedAt ?? work.runStartedAt ?? now)) / 1000),
            waiting: work.waiting,
          }
        : undefined,
      session: session && {
        messages: session.messageCount,
        tokens: session.promptTokens + session.completionTokens,
        cost: dollarText(session.cost),
      },
      display: { ...displayOn(envelope.route.channel), ...chosen },
      settings: { ...lane.settings, ...work?.overrides },
    };
  },
  apply: async (_tx, _scene, facts) => facts,
  say: ({ work, session, settings, display, ...values }, texts) =>
    [
      fillText(texts.statusAgent, values),
      fillText(texts.statusAccount, values),
      work ? fillText(work.isPaused ? texts.statusPaused : texts.statusWorking, work) : texts.nothingToStop,
      session ? fillText(texts.statusSession, session) : texts.statusNoSession,
      queueLine(settings, texts),
      fillText(texts.statusDisplay, display),
    ].join('\n'),
});
