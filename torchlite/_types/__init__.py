"""What describes a tensor whatever holds it: data types, devices by name, sizes, layouts. Nothing here looks up."""
