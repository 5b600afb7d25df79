import { peer } from '../../config/peer.ts';
import type { Answers } from './answers.ts';
import type { Network } from './network-questions.ts';
import type { Prompter } from './prompter.ts';

/** Asks who the first owner is; `isPaired`: they will be approved by a code. */
export async function askOwner(
  ask: Prompter,
  { entry: { id: channel }, setUp: { label, ownerId } }: Network,
): Promise<Answers & { readonly isPaired: boolean }> {
  const how = await ask.choose('Who is the owner, with permission to do everything?', [
    { value: 'pair', label: 'The first person I approve', hint: 'write to the bot; it gives you a code' },
    { value: 'id', label: `I know my id on ${label}` },
  ]);
  if (how === 'pair') return { isPaired: true, variables: {}, settings: {} };
  const { example, form } = ownerId;
  const id = await ask.text(`Your permanent id on ${label}`, {
    example,
    problemOf: (value) => {
      if (!form.test(value)) return `That isn't an id, such as ${example}. Names can change hands.`;
      return peer.safeParse(`${channel}:${value}`).error?.issues[0]?.message;
    },
  });
  return { isPaired: false, variables: {}, settings: { owners: [`${channel}:${id}`] } };
}

/** Asks in which groups Parley answers. */
export async function askGroups(ask: Prompter): Promise<Answers> {
  const groupPolicy = await ask.choose('Which groups should it answer in when mentioned?', [
    {
      value: 'allowlist',
      label: 'The ones I allow',
      hint: 'add it to a group or mention it there, and it asks you',
    },
    { value: 'disabled', label: 'None' },
    { value: 'open', label: 'All', hint: 'anyone there may use your model' },
  ]);
  return { variables: {}, settings: { access: { groupPolicy } } };
}
