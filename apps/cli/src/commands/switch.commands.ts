import { httpApi, SwitchName } from '@ambit/contracts';
import { Argument, type Command } from 'commander';
import type { Context } from '../context.js';

/** `switch`. */
export function addSwitchCommand(program: Command, context: Context): void {
  program
    .command('switch')
    .description('switch a feature on or off while everything runs; without a name, how they stand')
    .addArgument(new Argument('[name]').choices(SwitchName.options))
    .addArgument(new Argument('[state]').choices(['on', 'off']))
    .action(async (name: string | undefined, state: 'on' | 'off' | undefined) => {
      const client = await context.client();
      if (name !== undefined && state !== undefined) {
        const params = { name: SwitchName.parse(name) };
        await client.request(httpApi.putSwitch, { params, body: { enabled: state === 'on' } });
      }
      const { items } = await client.request(httpApi.listSwitches);
      const shown = name === undefined ? items : items.filter((item) => item.name === name);
      context.show({ items: shown }, () => shown.map((item) => `${item.name} is ${item.enabled ? 'on' : 'off'}\n`).join(''));
    });
}
