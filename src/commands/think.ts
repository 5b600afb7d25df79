import { type ReasoningLevel, reasoningLevels } from '#contracts/model.ts';
import { readChoice, setChoice } from '../store/lanes/session.ts';
import { fillText } from '../texts/chat-texts.ts';
import { adminsInGroups, chatCommand, type Problem } from './chat-command.ts';

type Request = { readonly level?: ReasoningLevel | 'default' };

type Input = Request & { readonly byDefault: ReasoningLevel };

/** `/think [level]`: shows or sets how long this session's model thinks, from its next run on. */
export const think = chatCommand<Request, Input, { readonly level: string; readonly isSet: boolean }>({
  name: 'think',
  usage: '[off|low|medium|high|default]',
  menu: 'thinkMenu',
  order: 'lane',
  parse: (words): Request | Problem => {
    if (words === '') return {};
    const level = [...reasoningLevels, 'default' as const].find((each) => each === words.toLowerCase());
    return level === undefined ? { problem: 'thinkUsage' } : { level };
  },
  right: adminsInGroups,
  load: ({ agentReasoning }, { lane }, request) => ({ ...request, byDefault: agentReasoning(lane.agentId) }),
  apply: async (tx, scene, { level, byDefault }) => {
    const { sessionId } = await scene.lane();
    if (level !== undefined)
      await setChoice(tx, sessionId, { reasoning: level === 'default' ? null : level });
    const { reasoning } = await readChoice(tx, sessionId);
    return { level: reasoning ?? byDefault, isSet: level !== undefined };
  },
  say: ({ isSet, level }, texts) => fillText(isSet ? texts.thinkSet : texts.thinkNow, { level }),
});
