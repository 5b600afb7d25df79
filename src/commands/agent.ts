import { platformRef } from '../sessions/identities.ts';
import { type BindingPlace, clearBinding, setBinding } from '../store/delivery/bindings.ts';
import { fillText, type TextKey, type TextValues } from '../texts/chat-texts.ts';
import { chatCommand, type KnownAgent, ownersAndAdmins, type Problem } from './chat-command.ts';

type Request = { readonly wanted?: string };

/** Without a wish it only says something. */
type Input = {
  readonly wish?: 'set' | 'clear';
  readonly place: BindingPlace;
  readonly agentId: string;
  readonly by: string;
  readonly said: TextKey;
  readonly values: TextValues;
};

/**
 * `/agent [name|default]`: shows or chooses the agent that answers here, from the next message on. In a topic the choice
 * is the topic's; elsewhere it is the group's, with all topics that have none. The former agent's conversation stays as
 * it is, and continues once that agent is chosen again.
 */
export const agent = chatCommand<Request, Input, Pick<Input, 'said' | 'values'>>({
  name: 'agent',
  usage: '[name|default]',
  menu: 'agentMenu',
  parse: (words): Request | Problem => {
    if (words === '') return {};
    return /^[\p{L}\p{N}_.-]{1,64}$/u.test(words) ? { wanted: words } : { problem: 'agentUsage' };
  },
  right: ownersAndAdmins,
  load: ({ agents }, { envelope, conversationKey, lane, agentOtherwise }, { wanted }) => {
    const { route, chat, sender } = envelope;
    const { thread = '' } = route;
    const isTopic = thread !== '';
    const basis = { place: { conversationKey, thread }, by: platformRef(route.channel, sender.id) };
    const say = (said: TextKey, id: string) => ({
      ...basis,
      agentId: id,
      said,
      values: { agent: calledOf(agents.find((each) => each.id === id) ?? { id, name: id }) },
    });
    if (wanted === undefined) return say(isTopic ? 'agentOfTopic' : 'agentNow', lane.agentId);
    // A direct chat has the configuration's bindings, by which the page shows it, too.
    if (chat.kind === 'dm' && !isTopic) return say('agentInDm', lane.agentId);
    if (wanted.toLowerCase() === 'default')
      return { ...say(isTopic ? 'agentOfTopicCleared' : 'agentCleared', agentOtherwise), wish: 'clear' };
    const found = findAgent(agents, wanted);
    if (found) return { ...say(isTopic ? 'agentOfTopicSet' : 'agentSet', found.id), wish: 'set' };
    const values = { name: wanted, agents: agents.map(lineOf).join('\n') };
    return { ...say('agentUnknown', lane.agentId), values };
  },
  apply: async (tx, _scene, { wish, place, agentId, by, said, values }) => {
    if (wish === 'set') await setBinding(tx, { ...place, agentId, setBy: by });
    if (wish === 'clear') await clearBinding(tx, place);
    return { said, values };
  },
  say: ({ said, values }, texts) => fillText(texts[said], values),
});

/** Finds an agent by its id, else by its name; people write neither with the capitals of the configuration. */
function findAgent(agents: readonly KnownAgent[], wanted: string): KnownAgent | undefined {
  const isWanted = (text: string) => text.toLowerCase() === wanted.toLowerCase();
  return agents.find(({ id }) => isWanted(id)) ?? agents.find(({ name }) => isWanted(name));
}

function lineOf(agent: KnownAgent): string {
  const { specialty } = agent;
  return specialty === undefined ? `- ${calledOf(agent)}` : `- ${calledOf(agent)}: ${specialty}`;
}

function calledOf({ id, name }: KnownAgent): string {
  return name === id ? id : `${name} (${id})`;
}
