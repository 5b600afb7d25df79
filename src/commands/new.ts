import { startSession } from '../store/lanes/session.ts';
import { adminsInGroups, asRequested, type ChatCommand, chatCommand, noWords } from './chat-command.ts';

export const newCommand = startNew('new');
export const reset = startNew('reset');

/** Makes a command that starts a new session, under the given name. */
function startNew(name: string): ChatCommand {
  return chatCommand({
    name,
    menu: 'newMenu',
    order: 'lane',
    abortsRun: true,
    parse: noWords(name),
    right: adminsInGroups,
    load: asRequested,
    apply: async (tx, scene) =>
      startSession(tx, await scene.lane(), { seq: scene.number, effects: scene.effects }),
    say: (_, texts) => texts.newSession,
  });
}
