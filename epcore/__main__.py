from epcore.commands.cli import main

raise SystemExit(main())
