// Starts both servers and a process that starts another, prints their ids as JSON, and stays until it is killed.
import { startGuarded, throwAwayNats, throwAwayPostgres } from '@ambit/embedded';

const [nats, postgres] = await Promise.all([throwAwayNats({ cacheDir: process.argv[2] }), throwAwayPostgres()]);
const stubborn = startGuarded({ command: '/bin/sh', args: ['-c', 'trap "" TERM; sleep 1000 & wait; sleep 1000'], graceSeconds: 1 });
console.log(JSON.stringify({ pids: [nats.process.pid, postgres.process.pid, stubborn.pid], groups: [stubborn.pid] }));
setInterval(() => undefined, 60_000);
