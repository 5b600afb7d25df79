import { suggestName } from '../config/suggestion.ts';
import { readChoice, setChoice } from '../store/lanes/session.ts';
import { fillText } from '../texts/chat-texts.ts';
import { adminsInGroups, chatCommand } from './chat-command.ts';

type Request = { readonly name?: string };

type Input = {
  readonly wish: 'show' | 'default' | 'set' | 'unknown';
  readonly name: string;
  readonly meant: string | undefined;
  /** The model used without a choice. */
  readonly byDefault: string;
  readonly names: string;
};

type Facts = Pick<Input, 'wish' | 'meant' | 'names' | 'name'>;

/** `/model [name]`: shows or sets this session's model, from its next run on. */
export const model = chatCommand<Request, Input, Facts>({
  name: 'model',
  usage: '[name|default]',
  menu: 'modelMenu',
  order: 'lane',
  parse: (words) => (words === '' ? {} : { name: words.slice(0, longestName) }),
  right: adminsInGroups,
  load: ({ models }, { lane, authority }, { name }) => {
    const known = models.names();
    // A model that the configuration doesn't name may be expensive or have no price, so only an owner may choose it.
    const mayChoose = (wanted: string) =>
      known.includes(wanted) || (authority === 'owner' && models.isKnown(wanted));
    return {
      wish: name === undefined ? 'show' : wishOf(name, mayChoose(name)),
      name: name ?? '',
      meant: name === undefined ? undefined : suggestName(name, known),
      byDefault: models.nameFor(lane.agentId, 'turn'),
      names: known.join(', '),
    };
  },
  apply: async (tx, scene, { wish, byDefault, ...input }) => {
    const { sessionId } = await scene.lane();
    if (wish === 'set') await setChoice(tx, sessionId, { model: input.name });
    if (wish === 'default') await setChoice(tx, sessionId, { model: null });
    if (wish === 'unknown') return { wish, ...input };
    return { wish, ...input, name: (await readChoice(tx, sessionId)).model ?? byDefault };
  },
  say: ({ wish, meant = '', ...facts }, texts) => {
    if (wish === 'show') return fillText(texts.modelNow, facts);
    if (wish !== 'unknown') return fillText(texts.modelSet, facts);
    return fillText(meant === '' ? texts.modelUnknown : texts.modelMeant, { ...facts, meant });
  },
});

const longestName = 200;

function wishOf(name: string, isKnown: boolean): Input['wish'] {
  if (name.toLowerCase() === 'default') return 'default';
  return isKnown ? 'set' : 'unknown';
}
