import { type ReasoningDisplay, reasoningDisplays } from '#contracts/display.ts';
import { readChoice, setChoice } from '../store/lanes/session.ts';
import { fillText } from '../texts/chat-texts.ts';
import { adminsInGroups, chatCommand, type Problem } from './chat-command.ts';

type Request = { readonly display?: ReasoningDisplay | 'default' };

type Input = Request & { readonly byDefault: ReasoningDisplay };

/** `/reasoning [off|on|stream]`: shows or sets whether this session's answers show the model's reasoning. */
export const reasoning = chatCommand<Request, Input, { readonly display: string; readonly isSet: boolean }>({
  name: 'reasoning',
  usage: '[off|on|stream|default]',
  menu: 'reasoningMenu',
  order: 'lane',
  parse: (words): Request | Problem => {
    if (words === '') return {};
    const display = [...reasoningDisplays, 'default' as const].find((each) => each === words.toLowerCase());
    return display === undefined ? { problem: 'reasoningUsage' } : { display };
  },
  right: adminsInGroups,
  load: ({ displayOn }, { envelope }, request) => ({
    ...request,
    byDefault: displayOn(envelope.route.channel).reasoning,
  }),
  apply: async (tx, scene, { display, byDefault }) => {
    const { sessionId } = await scene.lane();
    if (display !== undefined)
      await setChoice(tx, sessionId, { reasoningShown: display === 'default' ? null : display });
    const { reasoningShown } = await readChoice(tx, sessionId);
    return { display: reasoningShown ?? byDefault, isSet: display !== undefined };
  },
  say: ({ isSet, display }, texts) => fillText(isSet ? texts.reasoningSet : texts.reasoningNow, { display }),
});
