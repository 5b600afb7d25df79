import { lockForStop, type StopInput, type StopResult, stop as stopWork } from '../store/intake/stop.ts';
import { fillText } from '../texts/chat-texts.ts';
import { adminsInGroups, chatCommand } from './chat-command.ts';
import { linkedAccounts } from './one-time-code.ts';

export const stop = chatCommand<{ readonly isAll: boolean }, StopInput, StopResult>({
  name: 'stop',
  usage: '[all]',
  menu: 'stopMenu',
  // A person who sends "/stop it!" wants to stop the run, so extra words don't matter.
  parse: (words) => ({ isAll: words.toLowerCase() === 'all' }),
  right: (asker, request) => {
    const right = adminsInGroups(asker);
    return right === 'allowed' || request?.isAll ? right : 'own';
  },
  load: ({ policy }, call, { isAll }): StopInput => {
    const linked = linkedAccounts(policy, call);
    return { isPrivileged: call.right === 'allowed', isAll, ...(linked && { linked }) };
  },
  lock: async (tx, place, input) => {
    await lockForStop(tx, place, input);
    return input;
  },
  apply: async (tx, scene, input) => stopWork(tx, await scene.lane(), { scene, input }),
  say: (stopped, texts) => {
    if (stopped === 'done') return texts.stopped;
    if (stopped === 'nothing') return texts.nothingToStop;
    return fillText(stopped === 'withdrawn' ? texts.stoppedOwn : texts.notPermitted, {
      who: texts.whoStops,
    });
  },
  isRefused: (stopped) => stopped === 'not-permitted',
});
