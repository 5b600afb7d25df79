import { type Verbose, verboseLevels } from '#contracts/display.ts';
import { readChoice, setChoice } from '../store/lanes/session.ts';
import { fillText } from '../texts/chat-texts.ts';
import { adminsInGroups, chatCommand, type Problem } from './chat-command.ts';

type Request = { readonly level?: Verbose | 'default' };

type Input = Request & { readonly byDefault: Verbose };

/** `/verbose [on|off]`: shows or sets whether this session's answers list the tool calls before them. */
export const verbose = chatCommand<Request, Input, { readonly level: string; readonly isSet: boolean }>({
  name: 'verbose',
  usage: '[on|off|default]',
  menu: 'verboseMenu',
  order: 'lane',
  parse: (words): Request | Problem => {
    if (words === '') return {};
    const level = [...verboseLevels, 'default' as const].find((each) => each === words.toLowerCase());
    return level === undefined ? { problem: 'verboseUsage' } : { level };
  },
  right: adminsInGroups,
  load: ({ displayOn }, { envelope }, request) => ({
    ...request,
    byDefault: displayOn(envelope.route.channel).verbose,
  }),
  apply: async (tx, scene, { level, byDefault }) => {
    const { sessionId } = await scene.lane();
    if (level !== undefined) await setChoice(tx, sessionId, { verbose: level === 'default' ? null : level });
    const { verbose } = await readChoice(tx, sessionId);
    return { level: verbose ?? byDefault, isSet: level !== undefined };
  },
  say: ({ isSet, level }, texts) => fillText(isSet ? texts.verboseSet : texts.verboseNow, { level }),
});
