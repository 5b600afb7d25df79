import type { NativeCommand } from '#contracts/channel-abilities.ts';

export type CommandName =
  | 'start'
  | 'help'
  | 'status'
  | 'whoami'
  | 'new'
  | 'reset'
  | 'stop'
  | 'queue'
  | 'activation'
  | 'link'
  | 'pair';

export type CommandSpec = {
  readonly name: CommandName;
  /** What may follow the name; empty when nothing may. */
  readonly usage: string;
  /** One line, also shown in the network's own command menu (3 to 256 characters there). */
  readonly description: string;
  /** `immediate` acts at the door, past the lane; `lane` is an item of the lane, in its order. */
  readonly scope: 'immediate' | 'lane';
  /**
   * Who may use it in a group: `anyone`; `admin` = an administrator of the group or an owner;
   * `own-run` = those, and anyone for a run that their own message started; `own-items` = those, and
   * anyone to see what waits and to change what they have sent themselves.
   */
  readonly inGroups: 'anyone' | 'admin' | 'own-run' | 'own-items' | 'nobody';
  /** Who may use it in a direct conversation, among those who may write there at all. */
  readonly inDms: 'anyone' | 'owner';
};

/** Every command of the chat, in the order of `/help`. */
export const commandTable: readonly CommandSpec[] = [
  spec('help', 'anyone', 'Show the commands'),
  spec('status', 'anyone', 'Show what I am doing and what waits'),
  {
    ...spec('stop', 'own-run', 'Stop the answer in progress and cancel what you sent after it'),
    usage: '[all]',
  },
  { ...spec('new', 'admin', 'Start a new conversation'), scope: 'lane' },
  { ...spec('reset', 'admin', 'Start a new conversation'), scope: 'lane' },
  {
    ...spec('queue', 'own-items', 'Show or change what waits, and how, while I am working'),
    usage: '[list|cancel n|promote n|edit n text|reset|steer|collect|… debounce:2s quiet:1s cap:25 drop:old]',
  },
  { ...spec('activation', 'admin', 'In a group: answer when mentioned, or always'), usage: 'mention|always' },
  {
    ...spec('link', 'anyone', 'Continue this conversation from another account of yours'),
    usage: '[code|confirm code|list|remove channel:id]',
  },
  {
    ...spec('pair', 'nobody', 'For my owner: who may write to me'),
    usage: '[list|approve code|confirm code|revoke channel:id]',
    inDms: 'owner',
  },
  spec('whoami', 'anyone', 'Show your id on this network and your rights'),
  { ...spec('start', 'anyone', 'Say hello'), usage: '[code]' },
];

/** The table in the form that networks register. */
export const nativeCommands: readonly NativeCommand[] = commandTable.map(({ name, description, usage }) =>
  usage === '' ? { name, description } : { name, description, argument: usage },
);

function spec(name: CommandName, inGroups: CommandSpec['inGroups'], description: string): CommandSpec {
  return { name, usage: '', description, scope: 'immediate', inGroups, inDms: 'anyone' };
}
