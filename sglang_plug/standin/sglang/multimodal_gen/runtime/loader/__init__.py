"""From a model folder to components on the device."""
