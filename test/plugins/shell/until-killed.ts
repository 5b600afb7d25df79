/** A process that runs a command until it is killed; its argument is what the command's process is named. */
import { aShell } from './a-shell.ts';

const shell = await aShell();
const command = `setsid bash -c "exec -a ${process.argv[2]} sleep 600" & trap "" TERM; echo ready; sleep 600`;
const id = /as (\w{6})\./.exec(await shell.call('bash', { command, background: true }))?.[1];
for (let text = ''; !text.startsWith('ready'); await new Promise((resolve) => setTimeout(resolve, 20)))
  text = await shell.call('bash_jobs', { action: 'read', id });
process.stdout.write(`${shell.folder}\n`);
