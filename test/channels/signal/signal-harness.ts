import { capabilities } from '../../../channels/signal/capabilities.ts';
import type { SignalServer } from '../../platforms/signal/server.ts';
import type { Person, StandingMessage } from '../../platforms/signal/types.ts';
import { type ChannelHarness, shownFile } from '../contract/harness.ts';
import { aSignalStage, spansOf, type Way } from './signal-setup.ts';

/** One account, Ada, who writes to it, and the faults. */
export async function aSignalHarness(way: Way): Promise<ChannelHarness> {
  const stage = await aSignalStage(way);
  const { server, ada } = stage;
  let latest: StandingMessage | undefined;
  const theLatest = () => {
    if (latest === undefined) throw new Error('test error: nobody has said anything');
    return latest;
  };
  return {
    capabilities,
    account: server.account.uuid,
    route: stage.routeTo(ada),
    newAdapter: () => stage.newAdapter(),
    strangerAdapter: () => stage.newAdapter({ config: { number: '+15559999999' } }),
    personSays: async (text) => {
      latest = server.people.writes({ from: ada, text });
    },
    personEdits: async (text) => void server.people.edits(theLatest(), text),
    personDeletes: async () => server.people.deletes(theLatest()),
    personReacts: async (emoji, change) =>
      server.people.reacts(ada, theLatest(), change === 'put' ? emoji : undefined),
    botReactions: () => {
      const reaction = theLatest().reactions.get(server.account.uuid);
      return reaction === undefined ? [] : [reaction];
    },
    botEchoes: async (text) => void server.people.writes({ from: server.account, to: ada, text }),
    redeliver: async () => server.redeliver(1),
    sendsMalformed: async () => server.people.sendsUnreadable(ada),
    standing: () => {
      const own = server.botMessages(ada).filter(({ text }) => text !== 'an echo');
      const shown = own.map(async ({ from, timestamp, text, styles, quote, attachments: [file] }) => ({
        messageId: `${from.uuid}:${timestamp}`,
        quotes: quote && `${quote.authorUuid}:${quote.timestamp}`,
        text,
        spans: spansOf(styles),
        ...(file && { file: await shownFile(file.fileName ?? '', [file.bytes]) }),
      }));
      return Promise.all(shown);
    },
    close: () => stage.close(),
    faults: faultsOf(server, ada),
    receivingAway: async () => {
      await server.goAway();
      return () => server.comeBack();
    },
    ...(way === 'webhook' && {
      webhook: {
        deliver: (text, secret) =>
          stage.deliver(
            text,
            secret && { wrong: 'a-secret-of-22-characters-but-another', missing: '' }[secret],
          ),
      },
    }),
  };
}

function faultsOf(server: SignalServer, ada: Person): NonNullable<ChannelHarness['faults']> {
  const onSend = { path: '/v2/send' };
  return {
    unreachable: () =>
      server.fault({ kind: 'refuse', status: 400, error: `Unregistered user "${ada.uuid}"` }, onSend),
    answerLost: () => server.fault({ kind: 'drop-answer' }, onSend),
    answerHangs: async () => {
      server.fault({ kind: 'hang', isApplied: true }, onSend);
      await server.waitFor(() => server.botMessages(ada).length === 1);
    },
    away: async () => {
      await server.goAway();
      return () => server.comeBack();
    },
  };
}
