import { peer } from '../../config/peer.ts';
import type { Answers } from './answers.ts';
import type { NetworkName } from './network-questions.ts';
import type { Prompter } from './prompter.ts';

const idForms: Readonly<Record<NetworkName, { readonly example: string; readonly form: RegExp }>> = {
  telegram: { example: '123456789', form: /^\d{4,20}$/ },
  discord: { example: '80351110224678912', form: /^\d{15,22}$/ },
  signal: {
    example: '0d1e2f3a-4b5c-6d7e-8f90-a1b2c3d4e5f6',
    form: /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i,
  },
};

/** Asks who the first owner is; `isPaired`: they will be by a code. */
export async function askOwner(
  ask: Prompter,
  network: NetworkName,
): Promise<Answers & { readonly isPaired: boolean }> {
  const how = await ask.choose('Who is the owner, who may do everything?', [
    { value: 'pair', label: 'Whoever I approve first', hint: 'write to the bot; it gives you a code' },
    { value: 'id', label: `I know my id on ${network}` },
  ]);
  if (how === 'pair') return { isPaired: true, variables: {}, settings: {} };
  const { example, form } = idForms[network];
  const id = await ask.text(`Your permanent id on ${network}`, {
    example,
    problemOf: (value) => {
      if (!form.test(value)) return `That isn't an id, such as ${example}. Names can change hands.`;
      return peer.safeParse(`${network}:${value}`).error?.issues[0]?.message;
    },
  });
  return { isPaired: false, variables: {}, settings: { owners: [`${network}:${id}`] } };
}

/** Asks which groups are answered. */
export async function askGroups(ask: Prompter): Promise<Answers> {
  const groupPolicy = await ask.choose('Which groups does it answer in, when it is mentioned?', [
    { value: 'allowlist', label: 'Those I allow', hint: 'mention it there, and it asks you' },
    { value: 'disabled', label: 'None' },
    { value: 'open', label: 'All', hint: 'anyone there may use your model' },
  ]);
  return { variables: {}, settings: { access: { groupPolicy } } };
}
