import { parleyCommand } from '#channel-kit/own-commands.ts';
import type { Config } from '../../config/config.ts';
import { askProcesses, downText, type ProcessHealth } from '../ask-processes.ts';
import { type DoctorCheck, failed, ok, warning } from './check.ts';

/** Checks the health of the folder's running processes, as shown by `/readyz` and `parley status`. */
export async function checkProcesses(
  config: Pick<Config, 'dataDir' | 'databaseUrl'>,
): Promise<readonly DoctorCheck[]> {
  const processes = await askProcesses(config.dataDir);
  const isWorked = processes.length === 0 || processes.some(({ role }) => role !== 'gateway');
  return [...processes.map(judge), ...(isWorked ? [] : [lacksWorker(config)])];
}

/** Reports that no worker runs. With PostgreSQL one may run on another machine, which can't be seen from here. */
function lacksWorker({ databaseUrl }: Pick<Config, 'databaseUrl'>): DoctorCheck {
  const words = 'a gateway is running but no worker: messages are stored but not answered';
  const fix = `start one: ${parleyCommand} start --role worker`;
  return databaseUrl === undefined
    ? failed('worker', words, fix)
    : warning('worker', `${words}, unless one runs on another machine`, fix);
}

function judge({ role, pid, url, health, down }: ProcessHealth): DoctorCheck {
  const name = `${role === 'all' ? 'gateway' : role} ${pid}`;
  switch (health) {
    case 'ready':
      return ok(name, `ready, at ${url}`);
    case 'not ready':
      return failed(name, down.map(downText).join('\n'), 'check the log of that process');
    case 'silent':
      return warning(
        name,
        `alive, but not responding at ${url}`,
        'it may be starting or stopping; otherwise check its log',
      );
    default:
      return health satisfies never;
  }
}
